# stageline_sources(VARIABLE FOLDER GROUP...): the sources of the groups (folders and files below FOLDER, "plan+mcp") as what is compiled: units
# of several files each, of one group, made by tools/unity.py, or with STAGELINE_UNITY=OFF the files themselves. main.cc is left out.
# A unit holds at most 5,000 lines, which take some fifteen seconds to compile: what an edited file costs.
function(stageline_sources variable folder)
  string(REPLACE "+" ";" patterns "${ARGN}")
  list(TRANSFORM patterns PREPEND "${folder}/")
  list(TRANSFORM patterns APPEND "/*.cc")
  list(TRANSFORM patterns REPLACE "\\.cc/\\*\\.cc$" ".cc")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
  list(FILTER files EXCLUDE REGEX "/main\\.cc$")
  if(STAGELINE_UNITY)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/unity.py ${CMAKE_BINARY_DIR}/unity/${variable} 5000
      ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${ARGN} OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" files "${files}")
    list(FILTER files EXCLUDE REGEX "^$")
  endif()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
