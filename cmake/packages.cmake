# What is installed beside the program: manual page, completions, licences; and the .deb (cpack -G DEB in the build folder).
# The program writes its own pages; compiled for another system, STAGELINE_HOST_PROGRAM, the same version for this one, does.
set(STAGELINE_HOST_PROGRAM "" CACHE FILEPATH "Cross-compiling: a stageline that runs here, for the manual page and completions")
set(STAGELINE_PAGES ${CMAKE_BINARY_DIR}/pages)
set(CPACK_PACKAGE_CONTACT "Stageline authors <stageline@example.invalid>")
configure_file(cmake/write_pages.cmake.in ${CMAKE_BINARY_DIR}/write_pages.cmake.in @ONLY)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/write_pages.cmake INPUT ${CMAKE_BINARY_DIR}/write_pages.cmake.in)
install(SCRIPT ${CMAKE_BINARY_DIR}/write_pages.cmake COMPONENT program)
install(FILES ${STAGELINE_PAGES}/stageline.1.gz DESTINATION share/man/man1 COMPONENT program)
install(FILES ${STAGELINE_PAGES}/stageline DESTINATION share/bash-completion/completions COMPONENT program)
install(FILES ${STAGELINE_PAGES}/_stageline DESTINATION share/zsh/site-functions COMPONENT program)
install(FILES ${STAGELINE_PAGES}/stageline.fish DESTINATION share/fish/vendor_completions.d COMPONENT program)
install(FILES ${STAGELINE_PAGES}/copyright ${STAGELINE_PAGES}/changelog.gz DESTINATION share/doc/stageline COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stageline)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "where the time of a distributed training run goes")
set(CPACK_PACKAGE_DESCRIPTION "Stageline shows where the time of a distributed training run goes: stage
by stage, micro-batch by micro-batch, rank by rank, kernel by kernel. It
reads Paddle's worker logs, PyTorch profiler traces, Ascend NPU profiles
and recordings of its own, explains them in words, draws and serves them.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)  # stripped when linked
set(CPACK_COMPONENTS_ALL program python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.17)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, xdg-utils, libcurl4 | libcurl4t64")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
include(CPack)
