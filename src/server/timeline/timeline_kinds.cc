#include "server/timeline/timeline_kinds.h"

namespace stageline {
namespace {

// The code and the group of each kind.
constexpr std::array<std::pair<const char*, const char*>, kViewKindCount> kKinds = {{
#define KIND(code, group) {code, group},
#include "server/timeline/view_kinds.def"
}};

ViewKind kind_of(Category category, KernelClass kernel) {
  switch (kernel) {
    case KernelClass::kComputation: return ViewKind::kComputation;
    case KernelClass::kCommunication: return ViewKind::kCommunication;
    case KernelClass::kMemory: return ViewKind::kMemory;
    case KernelClass::kOther: return ViewKind::kDeviceOther;
    case KernelClass::kNone: break;
  }
  switch (category) {
    case Category::kCpuOp: return ViewKind::kOperator;
    case Category::kUserAnnotation:
    case Category::kGpuAnnotation: return ViewKind::kAnnotation;
    case Category::kPythonFunction: return ViewKind::kPython;
    case Category::kRuntime:
    case Category::kDriver: return ViewKind::kRuntime;
    case Category::kOverhead: return ViewKind::kOverhead;
    case Category::kKernel:
    case Category::kMtiaWork: return ViewKind::kComputation;
    case Category::kMemcpy:
    case Category::kMemset: return ViewKind::kMemory;
    case Category::kDeviceSync:
    case Category::kDeviceEvent: return ViewKind::kDeviceOther;
    case Category::kCollective:
    case Category::kDeviceTask: return ViewKind::kCommunication;
    case Category::kProfilerRange:
    case Category::kSpan:
    case Category::kOther: break;
  }
  return ViewKind::kUnclassified;
}

}  // namespace

const ViewKindInfo& view_kind_info(uint8_t kind) {
  static const auto infos = [] {
    std::array<ViewKindInfo, kViewKindCount> all;
    for (size_t k = 0; k < all.size(); ++k)
      all[k] = {kKinds[k].first, words(std::string("kind.") + kKinds[k].first), kKinds[k].second};
    return all;
  }();
  return infos[kind < kViewKindCount ? kind : kViewKindCount - 1];
}

KindColours view_kind_colours(const Theme& theme, uint8_t kind) {
  if (kind < kCellKindCount) {
    const KindGroup group = kind_group(static_cast<CellKind>(kind));
    return {theme.group[group], theme.group_text[group]};
  }
  // Host work is drawn in the hue of the device work that it leads to, but lighter. The tints are chosen so that
  // touching rows of a thread can be distinguished with any kind of colour vision (tests/web/viewer_colour_test.mjs).
  constexpr double kOperatorTint = 0.4, kPythonTint = 0.3, kRuntimeTint = 0.3, kAnnotationTint = 0.4,
                   kOverheadTint = 0.55;
  const auto fill = [&]() -> Rgb {
    switch (static_cast<ViewKind>(kind)) {
      case ViewKind::kComputation: return theme.kernel[0];
      case ViewKind::kCommunication: return theme.kernel[1];
      case ViewKind::kMemory: return theme.kernel[2];
      case ViewKind::kDeviceOther: return theme.kernel[3];
      case ViewKind::kOperator: return mix(theme.kernel[0], theme.background, kOperatorTint);
      case ViewKind::kPython: return mix(theme.kernel[3], theme.background, kPythonTint);
      case ViewKind::kRuntime: return mix(theme.kernel[2], theme.background, kRuntimeTint);
      case ViewKind::kAnnotation: return mix(theme.group[KindGroup::kWeight], theme.background, kAnnotationTint);
      case ViewKind::kOverhead: return mix(theme.group[KindGroup::kBackward], theme.background, kOverheadTint);
      case ViewKind::kUnclassified: break;
    }
    return theme.group[KindGroup::kOther];
  }();
  return {fill, text_on(fill)};
}

KindTable slice_kinds(const Trace& trace) {
  KindTable table(trace.categories.size() + 1);
  for (size_t c = 0; c < table.size(); ++c) {
    const Category category = c < trace.categories.size() ? trace.categories[c].kind : Category::kOther;
    for (size_t k = 0; k < table[c].size(); ++k)
      table[c][k] = static_cast<uint8_t>(
          kind_of(category, k < kKernelClassCount ? static_cast<KernelClass>(k) : KernelClass::kNone));
  }
  return table;
}

}  // namespace stageline
