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
file(CONFIGURE OUTPUT ${STAGELINE_CHINESE_CC} @ONLY CONTENT [[
#include <string_view>
namespace stageline {
extern const std::string_view kChineseNames, kChineseSentences, kWords;
const std::string_view kChineseNames = R"words(@STAGELINE_columns_zh@)words";
const std::string_view kChineseSentences = R"words(@STAGELINE_sentences_zh@)words";
const std::string_view kWords = R"words(@STAGELINE_OWN_WORDS@)words";
}  // namespace stageline
]])
