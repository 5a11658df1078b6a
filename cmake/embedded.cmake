# What the program carries (src/base/embedded.h): sets STAGELINE_EMBEDDED, sources. The fonts are those of Debian's packages
# fonts-dejavu-core and fonts-wqy-microhei, also where the program is compiled for another system.
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
set(folder ${CMAKE_BINARY_DIR}/embedded)
file(MAKE_DIRECTORY ${folder})
list(TRANSFORM STAGELINE_EMBEDDED_FILES REPLACE "^[^=]*=" "" OUTPUT_VARIABLE files)
set(STAGELINE_EMBEDDED ${folder}/embedded.S ${folder}/embedded_list.cc)
add_custom_command(OUTPUT ${STAGELINE_EMBEDDED}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed.py ${ZSTD_PROGRAM} ${folder} ${STAGELINE_EMBEDDED_FILES}
  DEPENDS ${files} tools/embed.py COMMENT "Packing fonts and licences" VERBATIM)
set_source_files_properties(${folder}/embedded.S PROPERTIES COMPILE_OPTIONS "-I${folder}")
set_source_files_properties(${STAGELINE_EMBEDDED} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
