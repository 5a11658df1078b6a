// Rules that read pipeline work from names.
#include "pipeline/cells/cell_rules.h"

#include <doctest/doctest.h>

#include <string>

using namespace stageline;

namespace {

// The first set that has something to say of a name, as "set F2 s1 …"; "" when none has.
std::string read_name(const CellRules& rules, const std::string& name, RuleWhere where = RuleWhere::kAnnotation) {
  for (uint32_t s = 0; s < rules.sets().size(); ++s) {
    const auto match = rules.match(s, where, name);
    if (!match || rules.sets()[s].only_ranges) continue;
    const CellRule& rule = rules.rules()[match->rule];
    std::string out = rules.sets()[s].name;
    if (rule.role == RuleRole::kStep) return out + " step " + std::to_string(match->step);
    if (rule.role == RuleRole::kPipeline) return out + " pipeline";
    if (rule.role == RuleRole::kInterleaved) return out + " interleaved";
    for (size_t h = 0; h < rule.half_count; ++h) {
      const RuleHalf& half = match->halves[h];
      out += " " + std::string(kind_code(half.kind));
      if (half.micro_batch >= 0) out += std::to_string(half.micro_batch);
      if (half.stage >= 0) out += " s" + std::to_string(half.stage);
      if (half.chunk >= 0) out += " c" + std::to_string(half.chunk);
    }
    return out + (match->out_of_range ? " out of range" : "") + (rule.piece ? " piece" : "");
  }
  return "";
}

CellRules rules_of(const std::string& text) {
  CellRules rules;
  const Status added = rules.add(text, "my.rules", true);
  REQUIRE_MESSAGE(added, (added ? "" : Status(added).error().text()));
  return rules;
}

std::string error_of(const std::string& text) {
  CellRules rules;
  Status added = rules.add(text, "my.rules", true);
  return added ? "" : added.error().text();
}

}  // namespace

TEST_CASE("cell rules: the names of torch.distributed.pipelining") {
  const CellRules rules = shipped_cell_rules();
  CHECK(read_name(rules, "PP:2F0") == "torch-runtime F0 s2");
  CHECK(read_name(rules, "PP:10B127") == "torch-runtime B127 s10");
  CHECK(read_name(rules, "PP:3I4") == "torch-runtime I4 s3");
  CHECK(read_name(rules, "PP:3W4") == "torch-runtime W4 s3");
  CHECK(read_name(rules, "PP:1SEND_F2") == "torch-runtime SF2 s1");
  CHECK(read_name(rules, "PP:1RECV_B2") == "torch-runtime RB2 s1");
  CHECK(read_name(rules, "PP:(0F4;7B2)OVERLAP_F_B") == "torch-runtime F4 s0 B2 s7");
  CHECK(read_name(rules, "PP:(7B2;0F4)OVERLAP_F_B") == "torch-runtime B2 s7 F4 s0");
  CHECK(read_name(rules, "PP:2UNSHARD") == "torch-runtime C s2");
  CHECK(read_name(rules, "PP:2REDUCE_GRAD") == "torch-runtime C s2");
  CHECK(read_name(rules, "PP:2RESHARD") == "torch-runtime other s2");
  CHECK(read_name(rules, "Forward 12") == "torch-gpipe F12");
  const RuleWhere frame = RuleWhere::kFrame;
  CHECK(read_name(rules, "torch/distributed/pipelining/stage.py(612): forward_one_chunk", frame) == "torch-stage F");
  CHECK(read_name(rules, "/opt/x/torch/distributed/pipelining/stage.py(7): backward_weight_one_chunk", frame) ==
        "torch-stage W");
  CHECK(read_name(rules, "torch/distributed/pipelining/schedules.py(900): step", frame) == "torch-gpipe pipeline");
}

TEST_CASE("cell rules: the names of other frameworks") {
  const CellRules rules = shipped_cell_rules();
  CHECK(read_name(rules, "F3.1.17") == "zero-bubble F3 c1");
  CHECK(read_name(rules, "iter_2_140") == "zero-bubble step 140");
  CHECK(read_name(rules, "1F1B") == "dualpipe F B");
  CHECK(read_name(rules, "attn(F)") == "dualpipe F piece");
  CHECK(read_name(rules, "mlp(B)") == "dualpipe B piece");
  CHECK(read_name(rules, "attn(W)") == "dualpipe W piece");
  CHECK(read_name(rules, "dispatch(F)") == "dualpipe C");
  CHECK(read_name(rules, "combine(B)") == "dualpipe C");
  CHECK(read_name(rules, "forward_step") == "forward-step F");
  CHECK(read_name(rules, "backward_step_3") == "forward-step B3");
  const std::string megatron = "/w/Megatron-LM/megatron/core/pipeline_parallel/", deepspeed = "deepspeed/runtime/pipe/";
  const RuleWhere frame = RuleWhere::kFrame;
  CHECK(read_name(rules, megatron + "schedules.py(201): forward_step", frame) == "megatron F");
  CHECK(read_name(rules, megatron + "schedules.py(1201): forward_backward_pipelining_with_interleaving", frame) ==
        "megatron interleaved");
  CHECK(read_name(rules, megatron + "p2p_communication.py(9): send_forward_recv_backward", frame) == "megatron SF RB");
  CHECK(read_name(rules, megatron + "p2p_communication.py(9): send_forward_backward_recv_forward_backward", frame) ==
        "megatron SF SB RF RB");
  CHECK(read_name(rules, deepspeed + "engine.py(640): _exec_forward_pass", frame) == "deepspeed F");
  CHECK(read_name(rules, deepspeed + "engine.py(640): _exec_send_grads", frame) == "deepspeed SB");
  CHECK(read_name(rules, "Optimizer.step#AdamW.step") == "optimizer O");
}

TEST_CASE("cell rules: names that are not pipeline work match no rule") {
  const CellRules rules = shipped_cell_rules();
  for (const char* name :
       {"PP:F1", "PP:1F", "PP:1F1x", "xPP:1F1", "PP:1X1", "PP:-1F1", "PP:1 F1", "Forward", "Forward x", "forward",
        "1F1B1", "attn(F) ", "F3.1", "aten::mm", "ProfilerStep#3", "PP:(0F1;1B0)", ""})
    CHECK_MESSAGE(read_name(rules, name).empty(), name);
  CHECK(read_name(rules, "PP:2F0", RuleWhere::kFrame).empty());
  CHECK(read_name(rules, std::string(kLongestRuleName + 1, '1')).empty());
  CHECK(read_name(rules, "PP:99999999999F1") == "torch-runtime F1 out of range");
  CHECK(read_name(rules, "PP:1F99999999999999999999999999") == "torch-runtime F s1 out of range");
}

TEST_CASE("cell rules: the language of rule files") {
  CHECK(read_name(rules_of("annotation F f{mb}"), "f7") == "my.rules F7");  // without a set line: the file's name
  CHECK(read_name(rules_of("annotation F *{mb}"), "step of 7") == "my.rules F7");
  CHECK(read_name(rules_of("annotation F *mb={mb}*stage={stage}*"), "x mb=1 mb=2 stage=5 y") == "my.rules F1 s5");
  CHECK(read_name(rules_of("annotation F {{x}{mb}"), "{x}4") == "my.rules F4");
  CHECK(read_name(rules_of("annotation F {a|ab}{mb}"), "ab4").empty());  // the first that fits is taken
  CHECK(read_name(rules_of("annotation F+B {stage}&{stage}"), "3&4") == "my.rules F s3 B s4");
  CHECK(read_name(rules_of("# c\n\nset mine needs-stages split-b\n\toperator  I   x {mb}  \r\n"), "x 3",
                  RuleWhere::kOperator) == "mine I3");
  CHECK(read_name(rules_of("\xef\xbb\xbf"
                           "annotation F f{mb}"),
                  "f7") == "my.rules F7");  // as editors on Windows begin
  // The user's sets come first, the first rule of a set decides.
  CellRules rules = shipped_cell_rules();
  REQUIRE(rules.add("set mine\nannotation W PP:{stage}F{mb}\nannotation F PP:*", "my.rules", true));
  CHECK(read_name(rules, "PP:2F0") == "mine W0 s2");
  CHECK(rules.sets()[0].from_user);
  CHECK(rules.sets()[1].name == "torch-runtime");
}

TEST_CASE("cell rules: a wrong line says what is wrong, and where") {
  CHECK(error_of("annotation F x\nannotation Q y").find("my.rules:2: found \"Q\", which is no kind") == 0);
  CHECK(error_of("note F x").find("found \"note\", where set, annotation") != std::string::npos);
  CHECK(error_of("annotation F x{mbx}").find("{mbx}") != std::string::npos);
  CHECK(error_of("annotation F x{mb").find("not closed") != std::string::npos);
  CHECK(error_of("annotation F x{mb}{stage}").find("two numbers") != std::string::npos);
  CHECK(error_of("annotation F {mb} {mb}").find("more often") != std::string::npos);
  CHECK(error_of("annotation F").find("without a pattern") != std::string::npos);
  CHECK(error_of("annotation F+B+F+B+F x").find("more than four") != std::string::npos);
  CHECK(error_of("set").find("without a name") != std::string::npos);
  CHECK(error_of("set a b").find("\"b\" after the name") != std::string::npos);
  CHECK(error_of("annotation F " + std::string(kLongestRulePattern + 1, 'x')).find("pattern above") !=
        std::string::npos);
  std::string many;
  for (size_t i = 0; i <= kMaxRules; ++i) many += "annotation F x\n";
  CHECK(error_of(many).find("more than 4096 rules") != std::string::npos);
}

TEST_CASE("cell rules: hostile names cost what their length costs") {
  // A regular expression would try every way of sharing the characters out among the stars.
  const CellRules rules = rules_of("annotation F *a*a*a*a*a*a*a*a*a*a*b{mb}");
  const std::string name(kLongestRuleName, 'a');
  for (int i = 0; i < 200; ++i) CHECK(read_name(rules, name).empty());
  CHECK(read_name(rules, std::string(kLongestRuleName - 2, 'a') + "b1") == "my.rules F1");
}
