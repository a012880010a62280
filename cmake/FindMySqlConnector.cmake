# MySQL Connector/C++ 1.1 over MariaDB's client library, which come without a CMake package: the targets
# MySqlConnector::cppconn and, where its headers are, MySqlConnector::client, the client library itself.
find_path(MySqlConnector_INCLUDE_DIR mysql_driver.h)
find_library(MySqlConnector_LIBRARY mysqlcppconn)
find_library(MySqlConnector_CLIENT_LIBRARY mariadb)
find_path(MySqlConnector_CLIENT_INCLUDE_DIR mariadb_rpl.h PATH_SUFFIXES mariadb)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MySqlConnector
  REQUIRED_VARS MySqlConnector_LIBRARY MySqlConnector_CLIENT_LIBRARY MySqlConnector_INCLUDE_DIR)
if(MySqlConnector_FOUND AND NOT TARGET MySqlConnector::cppconn)
  add_library(MySqlConnector::cppconn UNKNOWN IMPORTED)
  set_target_properties(MySqlConnector::cppconn PROPERTIES
    IMPORTED_LOCATION "${MySqlConnector_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MySqlConnector_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${MySqlConnector_CLIENT_LIBRARY}")
endif()
if(MySqlConnector_CLIENT_INCLUDE_DIR AND NOT TARGET MySqlConnector::client)
  add_library(MySqlConnector::client UNKNOWN IMPORTED)
  set_target_properties(MySqlConnector::client PROPERTIES
    IMPORTED_LOCATION "${MySqlConnector_CLIENT_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MySqlConnector_CLIENT_INCLUDE_DIR}")
endif()
