# cmake -DWEB_DIR=… -DNPM=… -P npm_ci.cmake
# Installs exactly what package-lock.json says, unless that is what node_modules holds already.
# The lock (a file of its own: CMake empties what it locks) keeps two build folders from installing at the same time.
file(LOCK ${WEB_DIR}/.npm-ci.lock GUARD PROCESS TIMEOUT 600)
file(SHA256 ${WEB_DIR}/package-lock.json wanted)
set(stamp ${WEB_DIR}/node_modules/.stageline-lock-hash)
set(installed "")
if(EXISTS ${stamp})
  file(READ ${stamp} installed)
endif()
if(NOT installed STREQUAL wanted)
  execute_process(COMMAND ${NPM} ci --no-audit --no-fund --loglevel=error WORKING_DIRECTORY ${WEB_DIR}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "npm ci in ${WEB_DIR} failed:\n${output}"
      "  hint: without a network, copy web/node_modules from a machine that has one")
  endif()
  file(WRITE ${stamp} ${wanted})
endif()
