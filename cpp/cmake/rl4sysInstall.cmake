# `cmake --install` makes find_package(rl4sys) and rl4sys::client work elsewhere.
include(CMakePackageConfigHelpers)
set(rl4sys_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rl4sys")

install(TARGETS rl4sys_client EXPORT rl4sysTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
)
install(DIRECTORY include/rl4sys DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT rl4sysTargets NAMESPACE rl4sys:: DESTINATION ${rl4sys_package_dir})
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/rl4sysConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/rl4sysConfig.cmake"
  INSTALL_DESTINATION ${rl4sys_package_dir}
)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/rl4sysConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/rl4sysConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/rl4sysConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/rl4sysDependencies.cmake"
  DESTINATION ${rl4sys_package_dir}
)
