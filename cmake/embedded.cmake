# What the program carries (src/base/embedded.h): sets STAGELINE_EMBEDDED, sources. The fonts are those of Debian's packages
# fonts-dejavu-core and fonts-wqy-microhei, also where the program is compiled for another system.

# stageline_pack(LIST NAME=FILE...): compresses files into the array of EmbeddedFile of this name. Sets LIST_SOURCES, which define it.
function(stageline_pack listed)
  list(TRANSFORM ARGN REPLACE "^[^=]*=" "" OUTPUT_VARIABLE files)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(MAKE_DIRECTORY ${folder})
  set(sources ${folder}/${listed}.S ${folder}/${listed}.cc)
  add_custom_command(OUTPUT ${sources} COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed.py ${ZSTD_PROGRAM} ${folder} ${listed} ${ARGN}
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/tools/embed.py COMMENT "Packing ${listed}" VERBATIM)
  set_source_files_properties(${folder}/${listed}.S PROPERTIES COMPILE_OPTIONS "-I${folder}")
  set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set(${listed}_SOURCES ${sources} PARENT_SCOPE)
endfunction()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(ZSTD_PROGRAM zstd NO_CMAKE_FIND_ROOT_PATH)
if(NOT ZSTD_PROGRAM)
  message(FATAL_ERROR "zstd, which packs what the program carries, was not found.\n"
    "  hint: ./dev build installs what the build needs; on Debian or Ubuntu: apt install zstd")
endif()
set(STAGELINE_EMBEDDED_FILES NOTICE=${CMAKE_SOURCE_DIR}/NOTICE LICENSE=${CMAKE_SOURCE_DIR}/LICENSE
  cell-rules=${CMAKE_SOURCE_DIR}/src/pipeline/cells/shipped.rules
  ascend-tables=${CMAKE_SOURCE_DIR}/src/exporters/ascend_db/tables.sql cluster-tables=${CMAKE_SOURCE_DIR}/src/exporters/cluster_db.sql)
foreach(font dejavu/DejaVuSans.ttf dejavu/DejaVuSans-Bold.ttf wqy/wqy-microhei.ttc)
  get_filename_component(name ${font} NAME)
  find_file(STAGELINE_FONT_${name} ${name} PATHS /usr/share/fonts/truetype /usr/share/fonts PATH_SUFFIXES dejavu wqy TTF truetype/dejavu
    dejavu-sans-fonts wenquanyi wqy-microhei-fonts wenquanyi/wqy-microhei NO_CMAKE_FIND_ROOT_PATH)
  if(NOT STAGELINE_FONT_${name})
    message(FATAL_ERROR "the font ${name}, which charts are written with, was not found.\n"
      "  hint: ./dev build installs what the build needs; on Debian or Ubuntu: apt install fonts-dejavu-core fonts-wqy-microhei")
  endif()
  list(APPEND STAGELINE_EMBEDDED_FILES ${name}=${STAGELINE_FONT_${name}})
endforeach()
# The skill for agents: `stageline skill` writes it, `stageline mcp` offers it.
file(GLOB_RECURSE STAGELINE_SKILL CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/skills/stageline ${CMAKE_SOURCE_DIR}/skills/stageline/*.md)
foreach(page ${STAGELINE_SKILL})
  list(APPEND STAGELINE_EMBEDDED_FILES skill/${page}=${CMAKE_SOURCE_DIR}/skills/stageline/${page})
endforeach()
stageline_pack(kEmbeddedFiles ${STAGELINE_EMBEDDED_FILES})
set(STAGELINE_EMBEDDED ${kEmbeddedFiles_SOURCES})
