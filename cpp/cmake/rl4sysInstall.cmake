# `cmake --install` makes find_package(rl4sys) work elsewhere, with rl4sys::policy and, if it is built, rl4sys::client.
# Everything belongs to one of two components: the policy runtime, and the client over it.
include(CMakePackageConfigHelpers)
set(rl4sys_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rl4sys")
set(rl4sys_policy_headers arrays.hpp noise.hpp policy.hpp policy_spec.hpp portable_policy.hpp weights.hpp)

# Targets, and where they go: one list for both components.
function(rl4sys_install_targets component export)
  install(TARGETS ${ARGN} EXPORT ${export}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component}
  )
  install(EXPORT ${export} NAMESPACE rl4sys:: DESTINATION ${rl4sys_package_dir} COMPONENT ${component})
  install(FILES "${PROJECT_SOURCE_DIR}/../LICENSE"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/rl4sys-${component}" RENAME copyright COMPONENT ${component} OPTIONAL)
endfunction()

# A pkg-config file of cmake/, for programs that are not built with CMake.
function(rl4sys_install_pkg_config component name)
  # The file finds its own prefix, so that the installed files can be moved.
  file(RELATIVE_PATH rl4sys_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${component})
endfunction()

rl4sys_install_targets(policy rl4sysPolicyTargets rl4sys_policy)
foreach(rl4sys_header IN LISTS rl4sys_policy_headers)
  install(FILES "include/rl4sys/${rl4sys_header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rl4sys" COMPONENT policy)
endforeach()
rl4sys_install_pkg_config(policy rl4sys-policy)
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/rl4sysConfig.cmake.in" "${PROJECT_BINARY_DIR}/rl4sysConfig.cmake"
  INSTALL_DESTINATION ${rl4sys_package_dir}
)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rl4sysConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rl4sysConfig.cmake" "${PROJECT_BINARY_DIR}/rl4sysConfigVersion.cmake"
  DESTINATION ${rl4sys_package_dir} COMPONENT policy)

if(RL4SYS_BUILD_CLIENT)
  rl4sys_install_targets(client rl4sysClientTargets rl4sys_client rl4sys_cppclient)
  set(rl4sys_excluded)
  foreach(rl4sys_header IN LISTS rl4sys_policy_headers)
    list(APPEND rl4sys_excluded PATTERN "${rl4sys_header}" EXCLUDE)
  endforeach()
  install(DIRECTORY include/rl4sys DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client ${rl4sys_excluded})
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/rl4sysDependencies.cmake"
    DESTINATION ${rl4sys_package_dir} COMPONENT client)
  # A shared library brings its own dependencies; a program that links a static one needs them too.
  set(rl4sys_requires_private "grpc++ protobuf libzstd")
  set(rl4sys_requires)
  if(NOT BUILD_SHARED_LIBS)
    set(rl4sys_requires ", grpc++, protobuf, libzstd")
    set(rl4sys_requires_private)
  endif()
  rl4sys_install_pkg_config(client rl4sys)
endif()

if(rl4sys_is_top_level)
  include(cmake/rl4sysDebian.cmake)
endif()
