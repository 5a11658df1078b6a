#include "base/name_pattern.h"
#include "base/number.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/device_peaks.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

std::string kernel_args(int correlation, const std::string& blocks, const std::string& occupancy,
                        const std::string& more = "") {
  return launch_args(correlation, 7) + ",\"blocks per SM\":" + blocks + ",\"est. achieved occupancy %\":" + occupancy +
         more;
}
std::string gpu(const std::string& name, const std::string& ts, const std::string& dur, const std::string& args) {
  return torch_event("kernel", name, 0, 7, ts, dur, args);
}
std::string op(const std::string& name, const std::string& ts, const std::string& dur, const std::string& args = "") {
  return torch_event("cpu_op", name, 100, 1, ts, dur, args);
}

// Two steps with work on two streams, and a third whose work was not captured. Times in µs:
//   host    |step 3: 0–100: op 10–30, launches 12–14, 71–73, DataLoader 60–70 |step 4: 100–200: launches 110–112,
//   113–114| device  |kernel 20–60 copy 72–90 |                                       kernel 115–230, nccl 120–250
Trace two_steps() {
  return torch_trace({
      step(3, "0", "100"),
      op("aten::mm", "10", "20"),
      call("cudaLaunchKernel", "12", "2", 1),
      gpu("nvjet_hsh_128x256", "20", "40", kernel_args(1, "0.5", "50")),
      torch_event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 1, "60", "10"),
      call("cudaMemcpyAsync", "71", "2", 2),
      work("Memcpy HtoD (Pageable -> Device)", "72", "18", 2, 7, "gpu_memcpy"),
      step(4, "100", "100"),
      call("cudaLaunchKernel", "110", "2", 3),
      gpu("elementwise", "115", "115", kernel_args(3, "0.25", "25")),
      call("cudaLaunchKernel", "113", "1", 4),
      torch_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 8, "120", "130", kernel_args(4, "0.9", "10")),
      step(5, "200", "10"),
  });
}

std::vector<std::string> row_of(const Table& table, size_t row) {
  std::vector<std::string> out;
  for (size_t c = 0; c < table.columns().size(); ++c) out.push_back(table.raw_text(row, c));
  return out;
}
using Row = std::vector<std::string>;

}  // namespace

TEST_CASE("unions: what is shared, what is left, what a window covers") {
  const std::vector<Interval> a = {{0, 10}, {20, 30}, {40, 50}}, b = {{5, 25}, {28, 45}};
  const auto text = [](const std::vector<Interval>& list) {
    std::string out;
    for (const Interval& i : list) out += std::to_string(i.start) + "-" + std::to_string(i.end) + " ";
    return out;
  };
  CHECK(text(shared_of(a, b)) == "5-10 20-25 28-30 40-45 ");
  CHECK(text(without(a, b)) == "0-5 25-28 45-50 ");
  CHECK(text(without({{0, 100}}, a)) == "10-20 30-40 50-100 ");
  CHECK(text(without(a, {{-5, 100}})).empty());
  CHECK(text(without(a, {})) == text(a));
  CHECK(length_of(shared_of(a, b)) == shared_length(a, b));
  const CoveredTime time(a);
  CHECK(time.within(5, 45) == 5 + 10 + 5);
  CHECK(time.within(10, 20) == 0);
  CHECK(time.within(-100, 100) == 30);
  CHECK(time.within(22, 24) == 2);
  CHECK(time.within(24, 22) == 0);
  CHECK(CoveredTime({}).within(0, 9) == 0);
}

TEST_CASE("numbers as Python and numpy round them") {
  CHECK(decimal_of(0.025F) == 0.025);
  CHECK(decimal_of(42.25F) == 42.25);
  CHECK(round_exactly(0.025, 2) == 0.03);  // the double is a little more than 0.025; numpy's round gives 0.02
  CHECK(round_to(0.025, 2) == 0.02);
  CHECK(round_exactly(2.675, 2) == 2.67);
}

TEST_CASE("tensor cores by name: up to Ampere, Hopper, Blackwell and AMD") {
  for (const char* both :
       {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_tn",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64"}) {
    CHECK(uses_tensor_cores(both));
  }
  for (const char* ours : {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT",
                           "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>",
                           "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>",
                           "cutlass3x_sm100_tensorop_s128x256x16gemm_bf16", "sm90_gmma_kernel",
                           "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB0",
                           "_ZN2ck16tensor_operation6device12_GLOBAL__N_137kernel_grouped_conv_fwd_xdl_cshuffle"}) {
    CHECK(uses_tensor_cores(ours));
  }
  for (const char* none : {"volta_sgemm_64x64_nt", "void at::native::vectorized_elementwise_kernel<4>",
                           "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1", "summary_kernel", "dummy"}) {
    CHECK_FALSE(uses_tensor_cores(none));
  }
  CHECK_FALSE(may_use_tensor_cores("aten::prelu"));
  CHECK(may_use_tensor_cores("aten::addmm"));
  CHECK(may_use_tensor_cores("AddmmBackward0"));
  CHECK(may_use_tensor_cores("aten::_scaled_dot_product_flash_attention_backward"));
}

TEST_CASE("one pass over a name finds what looking for each text finds") {
  const std::vector<std::string_view> parts = {"alloc", "Alloc", "abcd", "bcda", "cuMemMap", "_xdl"};
  const AnyOf any(parts);
  const auto each = [&](std::string_view name) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
  };
  std::vector<std::string> names = {"",           "abc",      "cuMemMa", "cuMemMap",
                                    "cudaMalloc", "aaaalloc", "_xd_xdl", "\xff alloc"};
  for (int i = 0; i < 4096; ++i) {  // every text of six of these four letters
    std::string name;
    for (int k = 0, n = i; k < 6; ++k, n /= 4) name += "abcd"[n % 4];
    names.push_back(std::move(name));
  }
  size_t found = 0;
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(any.in(name) == each(name));
    found += any.in(name);
  }
  CHECK(found > 5);
}

TEST_CASE("steps follow their device work, and every instant has one category") {
  const Trace trace = two_steps();
  const auto tables = ask(trace, "tb-overview");
  const Table& steps = table_of(tables, "step-breakdown");
  REQUIRE(steps.row_count() == 2);
  //                         rank step total      kernel    memcpy   memset comm.   runtime loader   cpu     other
  CHECK(row_of(steps, 0) == Row{"0", "3", "100000", "40000", "18000", "0", "0", "3000", "10000", "8000", "21000"});
  CHECK(row_of(steps, 1) == Row{"0", "4", "150000", "115000", "0", "0", "20000", "3000", "0", "0", "12000"});
  const Table& mean = table_of(tables, "step-averages");
  CHECK(cell(mean, "time_ns", "category", "Kernel") == "77500");
  CHECK(cell(mean, "time_ns", "category", "Step") == "125000");
  CHECK(cell(mean, "time_share", "category", "Kernel") == "0.62");
  const Table& device = table_of(tables, "device-utilization");
  CHECK(cell(device, "utilization_share") == "0.7");  // (40 + 135) / 250
  CHECK(parse_double(cell(device, "sm_efficiency_share")).value() ==
        doctest::Approx((40 * 0.5 + 5 * 0.25 + 110 + 20 * 0.9) / 250));  // at most 1 while both run
  CHECK(parse_double(cell(device, "occupancy_share")).value() ==
        doctest::Approx((40 * 0.5 + 115 * 0.25 + 130 * 0.1) / (40 + 115 + 130)));
  CHECK(parse_double(cell(device, "tensor_core_share")).value() == doctest::Approx(40.0 / 285));
}

TEST_CASE("the first step begins after work that was launched before it") {
  const Trace trace = torch_trace({call("cudaLaunchKernel", "0", "2", 1), work("before", "10", "30", 1),
                                   work("lost its launch", "2", "3", 9), step(1, "20", "80"),
                                   call("cudaLaunchKernel", "30", "2", 2), work("own", "50", "10", 2)});
  CHECK(cell(table_of(ask(trace, "tb-overview"), "step-breakdown"), "total_ns") == "60000");  // 40–100
}

TEST_CASE("the last steps stay when asked for") {
  const Trace trace = two_steps();
  AnalysisInput input;
  input.trace = &trace;
  input.include_last_step = true;
  const auto result = find_analysis("tb-overview")->run(input);
  REQUIRE(result);
  CHECK(table_of(result->tables, "step-breakdown").row_count() == 3);
  input.include_last_step = false;
  CHECK(find_analysis("tb-overview")->run(input)->notes.count("tb.steps_dropped") == 1);
}

TEST_CASE("without steps the whole capture is one; without a device operators are what computes") {
  const Trace trace = torch_trace({op("aten::mm", "10", "20"), op("gloo:all_reduce", "20", "30")});
  const Table steps = table_of(ask(trace, "tb-overview"), "step-breakdown");
  REQUIRE(steps.row_count() == 1);
  CHECK(row_of(steps, 0) == Row{"0", "", "40000", "0", "0", "0", "30000", "0", "0", "10000", "0"});
  const Table overlap = table_of(ask(trace, "tb-distributed"), "overlap");
  CHECK(row_of(overlap, 0)[2] == "10000");  // computation alone
  CHECK(row_of(overlap, 0)[3] == "10000");  // both
  CHECK(row_of(overlap, 0)[4] == "20000");  // communication alone
}

TEST_CASE("recommendations are based on numbers") {
  const auto tables = ask(two_steps(), "tb-overview");
  const Table& advice = table_of(tables, "recommendations");
  REQUIRE(advice.row_count() == 0);  // loading 4 %, communication 8 %, utilisation 70 %
  const Trace busy =
      torch_trace({step(1, "0", "100"), torch_event("cpu_op", "enumerate(DataPipe)#X", 100, 1, "0", "50"),
                   call("cudaLaunchKernel", "60", "2", 1), work("ncclKernel_AllReduce", "62", "20", 1)});
  const Table found = table_of(ask(busy, "tb-overview"), "recommendations");
  CHECK(cell(found, "value_share", "recommendation", "input-loading") == "0.5");
  CHECK(cell(found, "value_share", "recommendation", "communication") == "0.2");
  CHECK(cell(found, "value_share", "recommendation", "low-utilization") == "0.2");
}

TEST_CASE("kernels: means by duration, tensor cores, launches apart") {
  const Trace trace =
      torch_trace({op("aten::mm", "0", "10"), call("cudaLaunchKernel", "1", "1", 1),
                   gpu("nvjet_a", "20", "30", kernel_args(1, "2", "50", ",\"grid\":[8,1,1],\"block\":[64,1,1]")),
                   op("aten::bmm", "10", "10"), call("cudaLaunchKernel", "11", "1", 2),
                   gpu("nvjet_a", "50", "10", kernel_args(2, "6", "10", ",\"grid\":[8,1,1],\"block\":[64,1,1]")),
                   call("cudaLaunchKernel", "13", "1", 3), work("plain", "60", "5", 3)});
  const Table kernels = table_of(ask(trace, "tb-kernel"), "kernels");
  REQUIRE(kernels.row_count() == 2);
  CHECK(cell(kernels, "name") == "nvjet_a");
  CHECK(cell(kernels, "count") == "2");
  CHECK(cell(kernels, "sum_ns") == "40000");
  CHECK(cell(kernels, "mean_ns") == "20000");
  CHECK(cell(kernels, "max_ns") == "30000");
  CHECK(cell(kernels, "min_ns") == "10000");
  CHECK(cell(kernels, "tensor_cores") == "yes");
  CHECK(cell(kernels, "mean_blocks_per_sm") == "3");                    // (2·30 + 6·10) / 40
  CHECK(cell(kernels, "mean_occupancy_share") == "0.4");                // (50·30 + 10·10) / 40 %
  CHECK(cell(kernels, "mean_blocks_per_sm", "name", "plain").empty());  // it says nothing
  const Table by_op =
      table_of(ask(trace, "tb-kernel", {.options = {{"group-by", "kernel-and-operator"}}}), "kernels-by-operator");
  REQUIRE(by_op.row_count() == 3);
  CHECK(cell(by_op, "sum_ns", "operator", "aten::mm") == "30000");
  CHECK(cell(by_op, "grid", "operator", "aten::bmm") == "[8,1,1]");
}

TEST_CASE("operators: host and device time, own and with what they call") {
  const Trace trace = torch_trace(
      {op("aten::linear", "0", "100", "\"External id\":1"), op("aten::addmm", "10", "50", "\"External id\":2"),
       call("cudaLaunchKernel", "20", "5", 1), work("nvjet_x", "30", "40", 1), call("cudaMemcpyAsync", "70", "5", 2),
       work("Memcpy DtoD (Device -> Device)", "80", "8", 2, 7, "gpu_memcpy"),
       op("Optimizer.step#SGD.step", "200", "10")});
  const Table ops = table_of(ask(trace, "tb-operator"), "operators");
  REQUIRE(ops.row_count() == 2);
  //                    rank name           calls dev self dev    host self host     eligible tc self  tc total
  CHECK(row_of(ops, 0) == Row{"0", "aten::addmm", "1", "40000", "40000", "45000", "50000", "yes", "1", "1"});
  CHECK(cell(ops, "self_device_ns", "name", "aten::linear") == "8000");
  CHECK(cell(ops, "device_ns", "name", "aten::linear") == "48000");
  CHECK(cell(ops, "self_host_ns", "name", "aten::linear") == "45000");
  CHECK(cell(ops, "self_tensor_core_share", "name", "aten::linear") == "0");
  CHECK(parse_double(cell(ops, "tensor_core_share", "name", "aten::linear")).value() == doctest::Approx(40.0 / 48));
}

TEST_CASE("driver calls, and copies that run as kernels") {
  const Trace trace = torch_trace({step(1, "0", "100"), op("triton", "0", "50"),
                                   torch_event("cuda_driver", "cuLaunchKernel", 100, 1, "10", "5", launch_args(1)),
                                   work("triton_poi_fused", "20", "30", 1), call("hipLaunchKernel", "60", "2", 2),
                                   work("__amd_rocclr_copyBuffer", "70", "10", 2)});
  const Table ours = table_of(ask(trace, "tb-overview"), "step-breakdown");
  //                         rank step total     kernel   memcpy   memset comm. runtime loader cpu      other
  CHECK(row_of(ours, 0) == Row{"0", "1", "100000", "30000", "10000", "0", "0", "7000", "0", "15000", "38000"});
  CHECK(cell(table_of(ask(trace, "tb-operator"), "operators"), "self_host_ns") == "45000");
  CHECK(cell(table_of(ask(trace, "tb-operator"), "operators"), "device_ns") == "30000");
}

TEST_CASE("a call that calls one of its own name is one call") {
  const Trace trace = torch_trace({op("aten::mm", "0", "100"), op("aten::mm", "10", "50"),
                                   call("cudaLaunchKernel", "20", "5", 1), work("sm80_xmma_gemm", "30", "40", 1)});
  const Table ours = table_of(ask(trace, "tb-operator"), "operators");
  CHECK(row_of(ours, 0) == Row{"0", "aten::mm", "1", "40000", "40000", "95000", "100000", "yes", "1", "1"});
}

TEST_CASE("shapes tell calls of an operator apart") {
  const Trace trace =
      torch_trace({op("aten::mm", "0", "10", R"("Input Dims":[[2, 3], [3, 4]])"),
                   op("aten::mm", "20", "30", R"("Input Dims":[[5, 3], [3, 4]])"), op("aten::mm", "60", "5")});
  const Table ops =
      table_of(ask(trace, "tb-operator", {.options = {{"group-by", "operator-and-shape"}}}), "operators-by-shape");
  REQUIRE(ops.row_count() == 3);  // without a device: most host time of their own first
  CHECK(cell(ops, "input_shape") == "[[5, 3], [3, 4]]");
  CHECK(cell(ops, "host_ns", "input_shape", "[[2, 3], [3, 4]]") == "10000");
  CHECK(cell(ops, "host_ns", "input_shape", "[]") == "5000");
}
