# Builds the sentences (src/base/words.h) and the names of tables and columns in Chinese (src/base/chinese.h) into one C++ source: sets STAGELINE_CHINESE_CC.
# Sentences are in words.json of the rooms that say them, or in src/words.json; the same name in two files is an error.
set(STAGELINE_CHINESE_CC ${CMAKE_BINARY_DIR}/chinese_words.cc)
set(STAGELINE_WORDS_PATH ${CMAKE_SOURCE_DIR}/web/src/i18n/columns_zh.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STAGELINE_WORDS_PATH})
file(READ ${STAGELINE_WORDS_PATH} STAGELINE_columns_zh)
file(GLOB_RECURSE STAGELINE_WORDS_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/words.json ${CMAKE_SOURCE_DIR}/src/*/words.json)
list(REMOVE_DUPLICATES STAGELINE_WORDS_FILES)
set(STAGELINE_ALL_WORDS "")
foreach(STAGELINE_WORDS_PATH ${STAGELINE_WORDS_FILES})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STAGELINE_WORDS_PATH})
  file(READ ${STAGELINE_WORDS_PATH} STAGELINE_WORDS)
  string(REGEX MATCHALL "\n  \"[^\"]+\": {" STAGELINE_WORDS_OWN "${STAGELINE_WORDS}")
  list(FILTER STAGELINE_WORDS_OWN EXCLUDE REGEX "\"(answers|columns_zh|sentences_zh)\"")
  foreach(STAGELINE_WORDS_NAME ${STAGELINE_WORDS_OWN})
    string(MD5 STAGELINE_WORDS_ID "${STAGELINE_WORDS_NAME}")
    string(PREPEND STAGELINE_WORDS_ID STAGELINE_SAYS_)
    if(DEFINED ${STAGELINE_WORDS_ID})
      message(FATAL_ERROR "${STAGELINE_WORDS_NAME} is in ${STAGELINE_WORDS_PATH} and in ${${STAGELINE_WORDS_ID}}: keep one")
    endif()
    set(${STAGELINE_WORDS_ID} ${STAGELINE_WORDS_PATH})
  endforeach()
  if(STAGELINE_ALL_WORDS)
    string(APPEND STAGELINE_ALL_WORDS ",")
  endif()
  string(APPEND STAGELINE_ALL_WORDS "${STAGELINE_WORDS}")
endforeach()
file(CONFIGURE OUTPUT ${STAGELINE_CHINESE_CC} @ONLY CONTENT [[
#include <string_view>
namespace stageline {
extern const std::string_view kChineseNames, kWords;
const std::string_view kChineseNames = R"words(@STAGELINE_columns_zh@)words";
const std::string_view kWords = R"words([@STAGELINE_ALL_WORDS@])words";
}  // namespace stageline
]])
