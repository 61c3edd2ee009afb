# CPack writes Debian packages with the headers, the libraries and their dependencies.
file(REMOVE_RECURSE "${RESULT}")
execute_process(COMMAND "${CPACK}" -G DEB -B "${RESULT}" --config "${BUILD}/CPackConfig.cmake" RESULT_VARIABLE failed
  OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed)
  message(FATAL_ERROR "cpack failed:\n${output}")
endif()

# expect_package(name pattern…): one package of this name, whose list of files and fields match every pattern.
function(expect_package name)
  file(GLOB found "${RESULT}/${name}_*.deb")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "Expected one package ${name}, found '${found}':\n${output}")
  endif()
  execute_process(COMMAND "${DPKG_DEB}" --info "${found}" OUTPUT_VARIABLE about RESULT_VARIABLE failed)
  execute_process(COMMAND "${DPKG_DEB}" --contents "${found}" OUTPUT_VARIABLE files RESULT_VARIABLE failed_too)
  foreach(pattern IN LISTS ARGN)
    if(failed OR failed_too OR NOT "${about}${files}" MATCHES "${pattern}")
      message(FATAL_ERROR "${found} lacks '${pattern}':\n${about}${files}")
    endif()
  endforeach()
endfunction()

expect_package(librl4sys-policy-dev "/usr/include/rl4sys/portable_policy.hpp" "librl4sys_policy" "rl4sys-policy.pc"
  "rl4sysConfig.cmake")
if(CLIENT)
  expect_package(librl4sys-dev "/usr/include/rl4sys/agent.hpp" "librl4sys\\.[as]" "rl4sys.pc" "libgrpc\\+\\+-dev")
endif()
