# What-if for the page of a report (src/wasm): the same sources as the program's, compiled to WebAssembly. Sets STAGELINE_WASM, the
# file; empty where no compiler for it is here, and then reports say that what-if needs the program (docs/decisions/what-if-in-reports.md).
find_program(STAGELINE_WASM_CXX NAMES clang++-19 clang++-20 clang++-21 clang++)
set(STAGELINE_WASM "")
if(STAGELINE_WASM_CXX)
  file(WRITE ${CMAKE_BINARY_DIR}/wasm/probe.cc "#include <charconv>\n#include <map>\nint main() { std::map<int, double> m; char c[9]; return *std::to_chars(c, c + 9, m[1]).ptr; }\n")
  execute_process(COMMAND ${STAGELINE_WASM_CXX} --target=wasm32-wasi -std=c++20 -fno-exceptions ${CMAKE_BINARY_DIR}/wasm/probe.cc -o ${CMAKE_BINARY_DIR}/wasm/probe.wasm
    RESULT_VARIABLE STAGELINE_WASM_FAILED OUTPUT_QUIET ERROR_QUIET)
  if(STAGELINE_WASM_FAILED EQUAL 0)
    set(STAGELINE_WASM ${CMAKE_BINARY_DIR}/web/what_if.wasm)
  endif()
endif()

if(STAGELINE_WASM)
  set(STAGELINE_WASM_SOURCES wasm schedules
    base/freed_memory.cc base/json_writer.cc base/number.cc base/result.cc base/sort.cc base/text.cc base/words.cc model/kind.cc model/schedule.cc
    pipeline/order/check_order.cc pipeline/replay/replay.cc pipeline/replay/schedule_numbers.cc pipeline/replay/step_replay.cc
    diagnosis/what_if/order_measures.cc diagnosis/what_if/order_plan.cc diagnosis/what_if/other_order.cc diagnosis/what_if/packed_model.cc
    diagnosis/what_if/what_if.cc diagnosis/what_if/what_if_answer.cc diagnosis/what_if/what_if_measures.cc
    engine/schedule_list.cc diagnosis/what_if/fitted_order.cc server/http/api_answer.cc server/http/query.cc server/pipeline/what_if_reply.cc)
  string(JOIN "+" STAGELINE_WASM_SOURCES ${STAGELINE_WASM_SOURCES})
  stageline_sources(STAGELINE_WASM_UNITS src ${STAGELINE_WASM_SOURCES})
  # The sentences that it says: {"name", {"English", "Chinese"}}, from one line each of the rooms' words.json.
  set(STAGELINE_WASM_WORDS "")
  foreach(room schedules diagnosis/what_if)
    file(READ ${CMAKE_SOURCE_DIR}/src/${room}/words.json words)
    string(REPLACE ";" "\\;" words "${words}")
    string(REGEX MATCHALL "\"(order|refused)\\.[^\"]*\": {[^}]*\"en\": \"[^\"]*\",[^\"]*\"zh\": \"[^\"]*\"" entries "${words}")
    foreach(entry ${entries})
      string(REGEX REPLACE "^(\"[^\"]*\"): {[^\"]*\"en\": (\"[^\"]*\"),[^\"]*\"zh\": (\"[^\"]*\")$" "{\\1, {\\2, \\3}},\n" entry "${entry}")
      string(APPEND STAGELINE_WASM_WORDS "${entry}")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/wasm/sentences.cc @ONLY CONTENT [[
#include "base/words.h"
namespace stageline {
const Sentences& sentences() {
  static const Sentences all = {@STAGELINE_WASM_WORDS@};
  return all;
}
}  // namespace stageline
]])
  list(APPEND STAGELINE_WASM_UNITS ${CMAKE_BINARY_DIR}/wasm/sentences.cc)
  set(STAGELINE_WASM_OBJECTS)
  foreach(source ${STAGELINE_WASM_UNITS})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE object)
    string(MAKE_C_IDENTIFIER ${object} object)
    set(object ${CMAKE_BINARY_DIR}/wasm/${object}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${STAGELINE_WASM_CXX} --target=wasm32-wasi -std=c++20 -Os -fno-exceptions -DNDEBUG -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_BINARY_DIR}/problems
        -include ${CMAKE_SOURCE_DIR}/src/wasm/alone.h -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} ${CMAKE_SOURCE_DIR}/src/wasm/alone.h DEPFILE ${object}.d
      COMMENT "Compiling to WebAssembly" VERBATIM)
    list(APPEND STAGELINE_WASM_OBJECTS ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/web)
  # What nobody reaches is left out, and with it what it would need of the rest of the program.
  add_custom_command(OUTPUT ${STAGELINE_WASM}
    COMMAND ${STAGELINE_WASM_CXX} --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,--gc-sections -Wl,-z,stack-size=1048576 ${STAGELINE_WASM_OBJECTS} -o ${STAGELINE_WASM}
    DEPENDS ${STAGELINE_WASM_OBJECTS} COMMENT "Linking what-if for reports" VERBATIM)
  message(STATUS "What-if in reports: ${STAGELINE_WASM_CXX}")
else()
  message(STATUS "What-if in reports: none, for no compiler makes WebAssembly here (clang-19, lld-19, libc++-19-dev-wasm32, libclang-rt-19-dev-wasm32)")
endif()
