#include "server/timeline_kinds.h"

namespace stageline {
namespace {

constexpr std::array<ViewKindInfo, kViewKindCount> kKinds = {{
    {"F", "forward", "前向", "forward"},
    {"B", "backward", "反向", "backward"},
    {"I", "input grad", "输入梯度", "backward"},
    {"W", "weight grad", "权重梯度", "weight"},
    {"F&B", "forward and backward", "前向与反向", "forward"},
    {"SF", "send forward", "发送激活", "message"},
    {"RF", "receive forward", "接收激活", "message"},
    {"SB", "send backward", "发送梯度", "message"},
    {"RB", "receive backward", "接收梯度", "message"},
    {"C", "collective", "集合通信", "collective"},
    {"O", "optimizer", "优化器", "optimizer"},
    {"other", "other", "其他", "other"},
    {"compute", "computation", "计算", "computing"},
    {"comm", "communication", "通信", "communication"},
    {"memory", "memory", "内存操作", "memory"},
    {"device", "other device work", "设备上的其他工作", "device_other"},
    {"operator", "operator", "算子", "operator"},
    {"python", "Python", "Python", "python"},
    {"runtime", "runtime call", "运行时调用", "runtime"},
    {"annotation", "annotation", "标注", "annotation"},
    {"overhead", "profiler overhead", "采集开销", "overhead"},
    {"unknown", "not classified", "未分类", "other"},
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

const ViewKindInfo& view_kind_info(uint8_t kind) { return kKinds[kind < kViewKindCount ? kind : kViewKindCount - 1]; }

KindColours view_kind_colours(const Theme& theme, uint8_t kind) {
  if (kind < kCellKindCount) {
    const auto group = static_cast<size_t>(kind_group(static_cast<CellKind>(kind)));
    return {theme.group[group], theme.group_text[group]};
  }
  // What the host does is drawn lighter than the device work it leads to, in the same hue. How much: rows of a thread
  // touch, and these are apart with any kind of colour vision (tests/web/viewer_colour_test.mjs).
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
      case ViewKind::kAnnotation: return mix(theme.group[2], theme.background, kAnnotationTint);
      case ViewKind::kOverhead: return mix(theme.group[1], theme.background, kOverheadTint);
      case ViewKind::kUnclassified: break;
    }
    return theme.group[6];
  }();
  return {fill, text_on(fill)};
}

KindTable slice_kinds(const Trace& trace) {
  KindTable table(trace.categories.size() + 1);
  for (size_t c = 0; c < table.size(); ++c) {
    const Category category = c < trace.categories.size() ? trace.categories[c].kind : Category::kOther;
    for (size_t k = 0; k < table[c].size(); ++k)
      table[c][k] = static_cast<uint8_t>(kind_of(category, k <= 4 ? static_cast<KernelClass>(k) : KernelClass::kNone));
  }
  return table;
}

}  // namespace stageline
