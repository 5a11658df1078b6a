# Builds the sentences (src/base/words.h) and the Chinese dictionaries (src/base/chinese.h) into one C++ source: sets STAGELINE_CHINESE_CC.
set(STAGELINE_CHINESE_CC ${CMAKE_BINARY_DIR}/chinese_words.cc)
foreach(STAGELINE_WORDS columns_zh sentences_zh)
  set(STAGELINE_WORDS_PATH ${CMAKE_SOURCE_DIR}/web/src/i18n/${STAGELINE_WORDS}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STAGELINE_WORDS_PATH})
  file(READ ${STAGELINE_WORDS_PATH} STAGELINE_${STAGELINE_WORDS})
endforeach()
set(STAGELINE_WORDS_PATH ${CMAKE_SOURCE_DIR}/src/words.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STAGELINE_WORDS_PATH})
file(READ ${STAGELINE_WORDS_PATH} STAGELINE_OWN_WORDS)
file(GLOB STAGELINE_WORDS_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/analyses/*/words.json)
set(STAGELINE_ANALYSES_WORDS "")
foreach(STAGELINE_WORDS_PATH ${STAGELINE_WORDS_FILES})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STAGELINE_WORDS_PATH})
  file(READ ${STAGELINE_WORDS_PATH} STAGELINE_WORDS)
  if(STAGELINE_ANALYSES_WORDS)
    string(APPEND STAGELINE_ANALYSES_WORDS ",")
  endif()
  string(APPEND STAGELINE_ANALYSES_WORDS "${STAGELINE_WORDS}")
endforeach()
file(CONFIGURE OUTPUT ${STAGELINE_CHINESE_CC} @ONLY CONTENT [[
#include <string_view>
namespace stageline {
extern const std::string_view kChineseNames, kChineseSentences, kAnalysesWords, kWords;
const std::string_view kChineseNames = R"words(@STAGELINE_columns_zh@)words";
const std::string_view kChineseSentences = R"words(@STAGELINE_sentences_zh@)words";
const std::string_view kAnalysesWords = R"words([@STAGELINE_ANALYSES_WORDS@])words";
const std::string_view kWords = R"words(@STAGELINE_OWN_WORDS@)words";
}  // namespace stageline
]])
