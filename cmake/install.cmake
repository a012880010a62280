# Says which files `cmake --install` puts where, so that other projects find_package(KVStore). `cpack` makes a .deb of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Components: what an application needs that only talks to a server, and all of a store in its own process.
set(client_libraries kv_flags kvstore_api kv_base kv_idgen kv_json kv_backend_api kv_proto kv_wire kv_client)
set(store_libraries kv_shardmap kv_catalog kv_router kv_backend_remote kv_assembly)
if(KV_WITH_ZOOKEEPER)
  list(APPEND store_libraries kv_coordination)
endif()
if(KV_WITH_CACHES)
  list(APPEND store_libraries kv_cached_servers kv_cached_protocol kv_backend_cached)
endif()
if(KV_WITH_ROCKSDB)
  list(APPEND store_libraries kv_rocksdb_engine kv_rocksdb_rows kv_rocksdb_objects kv_rocksdb_units kv_backend_rocksdb)
endif()
if(KV_WITH_MYSQL)
  list(APPEND store_libraries kv_mysql_driver kv_mysql_fleet kv_mysql_rows kv_mysql_objects kv_mysql_units kv_mysql_changes kv_backend_mysql)
endif()
install(TARGETS ${client_libraries} EXPORT KVStoreClientTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvstore)
install(TARGETS ${store_libraries} EXPORT KVStoreTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvstore)
if(KV_WITH_REPORTS)
  # A third one: time series, behind a server or in a store of the application's own.
  install(TARGETS kv_reports kv_wire_reports kv_client_reports EXPORT KVStoreReportsTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvstore)
  set_target_properties(kv_client_reports PROPERTIES EXPORT_NAME reports)
endif()
set_target_properties(kv_client PROPERTIES EXPORT_NAME client)
set_target_properties(kv_assembly PROPERTIES EXPORT_NAME kvstore)
# The headers a user includes, which include nothing else of ours.
file(GLOB headers ${PROJECT_SOURCE_DIR}/kvstore_api/*.h)
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvstore/kvstore_api)
if(KV_WITH_REPORTS)
  # reports/reports.h, and what it includes. tests/package/reports finds one that is missing.
  set(report_headers aggregate batch chunk chunk_types compaction exact_sum hyperloglog metadata number point_block
      quantile_sketch query report_types reports rollup_types row_key rows steps writer)
  list(TRANSFORM report_headers PREPEND ${PROJECT_SOURCE_DIR}/reports/)
  list(TRANSFORM report_headers APPEND .h)
  install(FILES ${report_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvstore/reports)
  install(FILES ${PROJECT_SOURCE_DIR}/client/reports.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvstore/client)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/wire/kvstore/v1/kvstore.proto ${PROJECT_SOURCE_DIR}/wire/kvstore/v1/reports.proto
        ${PROJECT_SOURCE_DIR}/wire/kvstore/v1/shards.proto
        DESTINATION ${CMAKE_INSTALL_DATADIR}/kvstore/proto/kvstore/v1)
if(KV_PROGRAMS)
  install(FILES packaging/kvstore.service packaging/kvstore-operate.service DESTINATION lib/systemd/system)
  install(FILES packaging/kv.json packaging/grafana-dashboard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/kvstore)
endif()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/KVStore)
install(EXPORT KVStoreClientTargets NAMESPACE KVStore:: DESTINATION ${config_folder})
install(EXPORT KVStoreTargets NAMESPACE KVStore:: DESTINATION ${config_folder})
if(KV_WITH_REPORTS)
  install(EXPORT KVStoreReportsTargets NAMESPACE KVStore:: DESTINATION ${config_folder})
endif()
configure_package_config_file(cmake/KVStoreConfig.cmake.in ${PROJECT_BINARY_DIR}/KVStoreConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/KVStoreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/KVStoreConfig.cmake ${PROJECT_BINARY_DIR}/KVStoreConfigVersion.cmake
              cmake/FindIsal.cmake cmake/FindZooKeeper.cmake cmake/FindMySqlConnector.cmake
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
