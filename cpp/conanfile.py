"""The Conan 2 recipe: `conan create cpp` builds the client; `-o "&:client=False"` the policy runtime alone."""

import re
import shutil
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Rl4sysConan(ConanFile):
    """Components as in CMake: rl4sys::policy, rl4sys::client and rl4sys::cppclient."""

    name = "rl4sys"
    description = "Reinforcement learning inside live systems: the C++ client and the policy runtime"
    license = "MIT"
    url = homepage = "https://github.com/rl4sys/rl4sys"
    topics = ("reinforcement-learning", "systems", "inference")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "fPIC": [True, False], "client": [True, False], "json": [True, False]}
    default_options = {"shared": False, "fPIC": True, "client": True, "json": True}

    def set_version(self):
        if not self.version:
            text = (Path(self.recipe_folder).parent / "src/rl4sys/version.py").read_text(encoding="utf-8")
            self.version = re.search(r'"(\d+\.\d+\.\d+)', text).group(1)

    def export_sources(self):
        root, exported = Path(self.recipe_folder).parent, Path(self.export_sources_folder)
        # Folder by folder: a pattern for the whole repository would be looked for in builds and environments as well.
        for folder in ("cpp/cmake", "cpp/include", "cpp/src", "proto"):
            copy(self, "*", root / folder, exported / folder)
        for file in ("cpp/CMakeLists.txt", "src/rl4sys/version.py", "LICENSE"):
            (exported / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, exported / file)

    def requirements(self):
        if self.options.json or self.options.client:
            self.requires("nlohmann_json/[>=3.2 <4]")
        if self.options.client:
            self.requires("grpc/[>=1.51 <2]")
            self.requires("protobuf/[>=3.21 <6]")
            self.requires("zstd/[>=1.5 <2]")

    def build_requirements(self):
        if self.options.client:
            self.tool_requires("grpc/<host_version>")
            self.tool_requires("protobuf/<host_version>")

    def layout(self):
        cmake_layout(self, src_folder=".", build_folder="build")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["RL4SYS_BUILD_CLIENT"] = bool(self.options.client)
        toolchain.cache_variables["RL4SYS_POLICY_JSON"] = bool(self.options.json or self.options.client)
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"RL4SYS_BUILD_{part}"] = False
        toolchain.cache_variables["RL4SYS_WERROR"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="cpp")
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "rl4sys")
        policy = self.cpp_info.components["policy"]
        policy.libs = ["rl4sys_policy"]
        policy.set_property("cmake_target_name", "rl4sys::policy")
        policy.set_property("pkg_config_name", "rl4sys-policy")
        if self.options.json or self.options.client:
            policy.requires = ["nlohmann_json::nlohmann_json"]
        if self.options.client:
            client = self.cpp_info.components["client"]
            client.libs = ["rl4sys"]
            client.set_property("cmake_target_name", "rl4sys::client")
            client.set_property("pkg_config_name", "rl4sys")
            client.requires = ["policy", "grpc::grpc++", "protobuf::libprotobuf", "zstd::zstd"]
            original = self.cpp_info.components["cppclient"]
            original.set_property("cmake_target_name", "rl4sys::cppclient")
            original.includedirs = ["include/rl4sys/cppclient"]
            original.requires = ["client"]
