# Finds the client's dependencies, for the build and for users of the installed package, and gathers them in the
# target `rl4sys_dependencies`. Debian 12's releases (gRPC 1.51, Protobuf 3.21) are the oldest that are tested.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RL4SYS_ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG QUIET)
if(NOT TARGET gRPC::grpc++)
  pkg_check_modules(RL4SYS_GRPC REQUIRED IMPORTED_TARGET grpc++)
endif()

if(NOT TARGET rl4sys_dependencies)
  add_library(rl4sys_dependencies INTERFACE IMPORTED)
  set(rl4sys_grpc_target gRPC::grpc++)
  if(NOT TARGET gRPC::grpc++)
    set(rl4sys_grpc_target PkgConfig::RL4SYS_GRPC)
  endif()
  set_property(TARGET rl4sys_dependencies PROPERTY INTERFACE_LINK_LIBRARIES
    ${rl4sys_grpc_target} protobuf::libprotobuf PkgConfig::RL4SYS_ZSTD Threads::Threads)
endif()
