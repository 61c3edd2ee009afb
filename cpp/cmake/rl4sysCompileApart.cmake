# rl4sys_compile_apart(source.cpp option…): adds a source of the current directory to the policy runtime with options of its own.
# An object library, since properties of sources do not reach targets of other directories before CMake 3.18.
function(rl4sys_compile_apart source)
  get_filename_component(name "${source}" NAME_WE)
  set(target rl4sys_object_${name})
  add_library(${target} OBJECT "${source}")
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE ${ARGN})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE rl4sys_warnings)
  target_sources(rl4sys_policy PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
