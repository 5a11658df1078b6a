# Packs the sentences (src/base/words.h) and the names of tables and columns in Chinese (src/base/chinese.h) into one file: sets kWordFiles_SOURCES.
# Sentences are in words.json of the rooms that say them, or in src/words.json; the same name in two files is an error.

# stageline_words(PATH...): the sources of kWordFiles (src/base/word_files.h), with further files of sentences.
function(stageline_words)
  set(path ${CMAKE_SOURCE_DIR}/web/src/i18n/columns_zh.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} STAGELINE_columns_zh)
  string(REGEX REPLACE "\n +" "\n" STAGELINE_columns_zh "${STAGELINE_columns_zh}")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/words.json ${CMAKE_SOURCE_DIR}/src/*/words.json)
  list(REMOVE_DUPLICATES files)
  set(STAGELINE_ALL_WORDS "")
  foreach(path ${files} ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} words)
    string(REGEX MATCHALL "\n  \"[^\"]+\": {" names "${words}")
    list(FILTER names EXCLUDE REGEX "\"(answers|columns_zh|sentences_zh|tables|column_sets|flags|commands|tools|tool_types|options|reasons)\"")
    foreach(name ${names})
      string(MD5 id "${name}")
      if(DEFINED file_of_${id})
        message(FATAL_ERROR "${name} is in ${path} and in ${file_of_${id}}: keep one")
      endif()
      set(file_of_${id} ${path})
    endforeach()
    string(REGEX REPLACE "\n +" "\n" words "${words}")  # a tenth of the text is indentation
    if(STAGELINE_ALL_WORDS)
      string(APPEND STAGELINE_ALL_WORDS ",")
    endif()
    string(APPEND STAGELINE_ALL_WORDS "${words}")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/words.json @ONLY CONTENT [=[[{"columns_zh": @STAGELINE_columns_zh@},@STAGELINE_ALL_WORDS@]]=])
  stageline_pack(kWordFiles words=${CMAKE_CURRENT_BINARY_DIR}/words.json)
  set(kWordFiles_SOURCES ${kWordFiles_SOURCES} PARENT_SCOPE)
endfunction()
stageline_words()

# The problems of each room that has some (src/base/diagnostics.h), from the severities in its words.json: STAGELINE_PROBLEMS/ROOM/problems.h.
set(STAGELINE_PROBLEMS ${CMAKE_BINARY_DIR}/problems)
set(severity_info Severity::kInfo)
set(severity_warning Severity::kWarning)
set(severity_loss Severity::kLoss)
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/words.json ${CMAKE_SOURCE_DIR}/src/*/words.json)
list(REMOVE_DUPLICATES files)
foreach(path ${files})
  file(READ ${path} words)
  string(REGEX MATCHALL "\n  \"problem\\.[^\"]+\": {\n[^\n]*" heads "${words}")
  if(NOT heads)
    continue()
  endif()
  set(STAGELINE_ROOM_PROBLEMS "")
  foreach(head ${heads})
    if(NOT head MATCHES "\"problem\\.([a-z0-9_]+)\\.([a-z0-9_]+)\\.?([a-z0-9_]*)\": {\n    \"severity\": \"(info|warning|loss)\"")
      message(FATAL_ERROR "${path}: a problem begins with its severity, info, warning or loss:${head}")
    endif()
    set(id ${CMAKE_MATCH_1}_${CMAKE_MATCH_2})
    set(name ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
    set(sentence problem.${name})
    if(CMAKE_MATCH_3)
      string(APPEND id _${CMAKE_MATCH_3})
      string(APPEND sentence .${CMAKE_MATCH_3})
    endif()
    string(APPEND STAGELINE_ROOM_PROBLEMS "inline constexpr Problem ${id} = {\"${name}\", ${severity_${CMAKE_MATCH_4}}, \"${sentence}\"};\n")
  endforeach()
  cmake_path(GET path PARENT_PATH room)
  cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
  file(CONFIGURE OUTPUT ${STAGELINE_PROBLEMS}/${room}/problems.h @ONLY CONTENT [[
#pragma once

#include "base/diagnostics.h"

namespace stageline::problem {

@STAGELINE_ROOM_PROBLEMS@
}  // namespace stageline::problem
]])
endforeach()
