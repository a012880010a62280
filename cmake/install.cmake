# What `cmake --install` puts where, so that other projects find_package(KVStore), and `cpack` makes a .deb of.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(public_libraries kv_flags kv_base kv_idgen kv_coordination kv_shardmap kvstore_api kv_proto kv_wire kv_client
                     kv_backend_rocksdb kv_backend_mysql kv_backend_remote kv_registry)
install(TARGETS ${public_libraries} EXPORT KVStoreTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvstore)
set_target_properties(kv_client PROPERTIES EXPORT_NAME client)
set_target_properties(kv_registry PROPERTIES EXPORT_NAME kvstore)
# The headers a user includes, and those that they include.
foreach(folder base client kvstore_api coordination idgen registry shardmap backends/mysql server)
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} ${folder}/*.h)
  if(folder STREQUAL "server")
    set(headers server/options.h)
  elseif(folder STREQUAL "backends/mysql")
    set(headers backends/mysql/options.h)
  elseif(folder STREQUAL "client")
    set(headers client/connect.h client/options.h)
  elseif(folder STREQUAL "registry")
    set(headers registry/config.h registry/open.h)
  endif()
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvstore/${folder})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/wire/kvstore/v1/kvstore.proto
        DESTINATION ${CMAKE_INSTALL_DATADIR}/kvstore/proto/kvstore/v1)
install(FILES packaging/kvstore.service DESTINATION lib/systemd/system)
install(FILES packaging/kv.json DESTINATION ${CMAKE_INSTALL_DATADIR}/kvstore)
install(FILES packaging/grafana-dashboard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/kvstore)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/KVStore)
install(EXPORT KVStoreTargets NAMESPACE KVStore:: DESTINATION ${config_folder})
configure_package_config_file(cmake/KVStoreConfig.cmake.in ${PROJECT_BINARY_DIR}/KVStoreConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/KVStoreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/KVStoreConfig.cmake ${PROJECT_BINARY_DIR}/KVStoreConfigVersion.cmake
              cmake/FindZooKeeper.cmake cmake/FindMySqlConnector.cmake
        DESTINATION ${config_folder})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kvstore)
set(CPACK_PACKAGE_CONTACT "The KVStore developers <kvstore@example.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-grpcio, python3-protobuf")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst)
include(CPack)
