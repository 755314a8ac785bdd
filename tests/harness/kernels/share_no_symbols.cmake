# Fails where an object compiled for an instruction set holds a symbol that the linker may pick for
# others: a CPU without the instructions would run into it. NM: the tool; OBJECTS: files, by commas.
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
if(NOT OBJECTS)
  message(FATAL_ERROR "no objects to look at")
endif()
foreach(object ${OBJECTS})
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" shared "${symbols}")
  list(FILTER shared EXCLUDE REGEX "DW\\.ref\\.")  # data for exceptions
  if(shared)
    message(SEND_ERROR "${object} shares:\n${shared}")
  endif()
endforeach()
