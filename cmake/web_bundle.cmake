# Builds web/ into one C++ source: sets STAGELINE_WEB_BUNDLE_CC. npm ci runs
# at build time, and only when web/package-lock.json changed; bundles live in the build folder, never in the repository.
find_program(NODE_PROGRAM NAMES node nodejs)
find_program(NPM_PROGRAM npm)
if(NOT NODE_PROGRAM OR NOT NPM_PROGRAM)
  message(FATAL_ERROR "node (18 or newer) and npm are needed to build the viewer, and were not found.\n"
    "  hint: ./dev build installs what the build needs; on Debian or Ubuntu: apt install nodejs npm")
endif()
execute_process(COMMAND ${NODE_PROGRAM} --version OUTPUT_VARIABLE NODE_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^v" "" NODE_VERSION "${NODE_VERSION}")
if(NODE_VERSION VERSION_LESS 18)
  message(FATAL_ERROR "node ${NODE_VERSION} is too old to build the viewer; 18 or newer is needed.\n"
    "  hint: ./dev build installs what the build needs")
endif()

set(STAGELINE_WEB_BUNDLE_CC ${CMAKE_BINARY_DIR}/web/web_bundle.cc)
file(GLOB_RECURSE STAGELINE_WEB_FILES CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/web/src/*.ts ${CMAKE_SOURCE_DIR}/web/src/*.tsx
  ${CMAKE_SOURCE_DIR}/web/src/*.json ${CMAKE_SOURCE_DIR}/web/src/*.css
  ${CMAKE_SOURCE_DIR}/src/analyses/*/words.json)
add_custom_command(OUTPUT ${STAGELINE_WEB_BUNDLE_CC}
  COMMAND ${CMAKE_COMMAND} -DWEB_DIR=${CMAKE_SOURCE_DIR}/web -DNPM=${NPM_PROGRAM}
    -P ${CMAKE_SOURCE_DIR}/cmake/npm_ci.cmake
  COMMAND ${NODE_PROGRAM} build.mjs ${CMAKE_BINARY_DIR}/web
  COMMAND ${NODE_PROGRAM} embed.mjs ${CMAKE_BINARY_DIR}/web ${STAGELINE_WASM}
  DEPENDS ${STAGELINE_WEB_FILES} ${STAGELINE_WASM} web/build.mjs web/embed.mjs web/package.json web/package-lock.json
    cmake/npm_ci.cmake
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/web
  COMMENT "Bundling the viewer" VERBATIM)
