# Finds Arrow C++ as the wheel pyarrow of PyPI has it, headers and libraries: ArrowWheel::parquet. ./dev parquet makes
# build/venv-arrow, where it is looked for; -DKV_PYARROW=FOLDER names another folder `pyarrow`.
set(KV_PYARROW "" CACHE PATH "The folder of the Python package pyarrow")
set(_folders "${KV_PYARROW}")
if(NOT KV_PYARROW)
  file(GLOB _folders ${PROJECT_SOURCE_DIR}/build/venv-arrow/lib/python3*/site-packages/pyarrow)
endif()
# The wheel has no links without versions, so files are named as they are.
foreach(_folder ${_folders})
  file(GLOB _arrow ${_folder}/libarrow.so.*)
  file(GLOB _parquet ${_folder}/libparquet.so.*)
  if(_arrow AND _parquet AND EXISTS ${_folder}/include/parquet/arrow/writer.h)
    set(ArrowWheel_FOLDER ${_folder})
    list(GET _arrow 0 ArrowWheel_ARROW)
    list(GET _parquet 0 ArrowWheel_PARQUET)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowWheel
  REQUIRED_VARS ArrowWheel_FOLDER ArrowWheel_ARROW ArrowWheel_PARQUET
  REASON_FAILURE_MESSAGE "so kv-parquet is not built, and kv neither writes nor reads Parquet: ./dev parquet gets it")
if(ArrowWheel_FOUND AND NOT TARGET ArrowWheel::parquet)
  add_library(ArrowWheel::arrow SHARED IMPORTED)
  set_target_properties(ArrowWheel::arrow PROPERTIES IMPORTED_LOCATION ${ArrowWheel_ARROW}
                        INTERFACE_INCLUDE_DIRECTORIES ${ArrowWheel_FOLDER}/include)
  add_library(ArrowWheel::parquet SHARED IMPORTED)
  set_target_properties(ArrowWheel::parquet PROPERTIES IMPORTED_LOCATION ${ArrowWheel_PARQUET}
                        INTERFACE_LINK_LIBRARIES ArrowWheel::arrow)
endif()
