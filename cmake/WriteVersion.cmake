# Writes version.cpp with the commit of the checkout at build time; unchanged text keeps the file.
execute_process(
  COMMAND git describe --always --dirty --abbrev=12 --exclude=*
  WORKING_DIRECTORY ${SOURCE_DIR}
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(TEXT "// Generated.\n#include \"harness/base/version.h\"\n\nnamespace kvlab {\nstd::string_view kvlab_version() { return \"${VERSION}\"; }\nstd::string_view git_commit() { return \"${COMMIT}\"; }\nstd::string_view build_type() { return \"${BUILD_TYPE}\"; }\n}  // namespace kvlab\n")
set(OLD "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} OLD)
endif()
if(NOT OLD STREQUAL TEXT)
  file(WRITE ${OUTPUT} "${TEXT}")
endif()
