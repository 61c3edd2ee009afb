# Writes and compiles the messages and the service of proto/. Only rl4sys/v1/training.proto has a service.
get_filename_component(rl4sys_proto_root "${CMAKE_CURRENT_SOURCE_DIR}/../proto" ABSOLUTE)
set(rl4sys_stub_root "${CMAKE_CURRENT_BINARY_DIR}/stubs")
set(rl4sys_protos arrays experience policy profile status training weights)

find_program(RL4SYS_GRPC_PLUGIN grpc_cpp_plugin)
if(NOT RL4SYS_GRPC_PLUGIN)
  message(FATAL_ERROR "grpc_cpp_plugin is missing. On Debian: apt-get install protobuf-compiler-grpc")
endif()
if(NOT TARGET protobuf::protoc)
  message(FATAL_ERROR "protoc is missing. On Debian: apt-get install protobuf-compiler")
endif()

set(rl4sys_proto_files)
set(rl4sys_stub_sources "${rl4sys_stub_root}/rl4sys/v1/training.grpc.pb.cc")
set(rl4sys_stub_headers "${rl4sys_stub_root}/rl4sys/v1/training.grpc.pb.h")
foreach(rl4sys_proto IN LISTS rl4sys_protos)
  list(APPEND rl4sys_proto_files "${rl4sys_proto_root}/rl4sys/v1/${rl4sys_proto}.proto")
  list(APPEND rl4sys_stub_sources "${rl4sys_stub_root}/rl4sys/v1/${rl4sys_proto}.pb.cc")
  list(APPEND rl4sys_stub_headers "${rl4sys_stub_root}/rl4sys/v1/${rl4sys_proto}.pb.h")
endforeach()
file(MAKE_DIRECTORY "${rl4sys_stub_root}")
add_custom_command(
  OUTPUT ${rl4sys_stub_sources} ${rl4sys_stub_headers}
  COMMAND protobuf::protoc --proto_path=${rl4sys_proto_root} --cpp_out=${rl4sys_stub_root} ${rl4sys_proto_files}
  COMMAND protobuf::protoc --proto_path=${rl4sys_proto_root} --grpc_out=${rl4sys_stub_root}
          --plugin=protoc-gen-grpc=${RL4SYS_GRPC_PLUGIN} ${rl4sys_proto_root}/rl4sys/v1/training.proto
  DEPENDS ${rl4sys_proto_files}
  COMMENT "Writing messages and service of rl4sys.v1"
  VERBATIM
)

add_custom_target(rl4sys_stub_files DEPENDS ${rl4sys_stub_sources} ${rl4sys_stub_headers})

# Generated code is compiled without the client's warnings.
add_library(rl4sys_stubs OBJECT ${rl4sys_stub_sources})
add_dependencies(rl4sys_stubs rl4sys_stub_files)
set_target_properties(rl4sys_stubs PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_features(rl4sys_stubs PUBLIC cxx_std_17)
target_include_directories(rl4sys_stubs PUBLIC "${rl4sys_stub_root}")
target_link_libraries(rl4sys_stubs PUBLIC rl4sys_dependencies)

# Targets that include the generated headers (as <rl4sys/v1/training.grpc.pb.h>) wait until they are written.
add_library(rl4sys_stub_headers INTERFACE)
target_include_directories(rl4sys_stub_headers SYSTEM INTERFACE "${rl4sys_stub_root}")
add_dependencies(rl4sys_stub_headers rl4sys_stub_files)
