# conan create packaging/conan, in a clone or an unpacked source archive. Cargo must be installed.
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

required_conan_version = ">=2.0"


class Percid(ConanFile):
    name = "percid"
    description = "Per-CPU data for user space: counters, histograms, pools, rings without locked instructions"
    license = "MIT OR Apache-2.0"
    topics = ("rseq", "per-cpu", "concurrency", "counter", "numa")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        with open(os.path.join(self._root(), "Cargo.toml"), encoding="utf-8") as manifest:
            lines = [line for line in manifest if line.startswith("version = ")]
        self.version = lines[0].split('"')[1]

    def export_sources(self):
        here = self._root()
        for file in ("Cargo.*", "CMakeLists.txt", "LICENSE-*"):
            copy(self, file, here, self.export_sources_folder)
        # vendor: in source archives. The whole workspace: Cargo reads the manifests of all members.
        for folder in (".cargo", "crates", "examples", "vendor", "verify"):
            copy(self, "*", os.path.join(here, folder), os.path.join(self.export_sources_folder, folder))

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("percid for C and C++ is for Linux")

    def layout(self):
        cmake_layout(self)

    def package_id(self):
        # Compiled by rustc, optimised in any case, with an interface of C.
        self.info.settings.rm_safe("compiler")
        self.info.settings.rm_safe("build_type")

    def generate(self):
        CMakeToolchain(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE-*", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan has its own.
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        os.remove(os.path.join(self.package_folder, "lib", "percid", "manifest"))

    def package_info(self):
        kind = "shared" if self.options.shared else "static"
        self.cpp_info.set_property("cmake_file_name", "percid")
        self.cpp_info.set_property("cmake_config_version_compat", "SameMinorVersion")
        self.cpp_info.set_property("cmake_target_name", "percid::percid")
        self.cpp_info.set_property("cmake_target_aliases", [f"percid::{kind}"])
        self.cpp_info.set_property("pkg_config_name", "percid")
        self.cpp_info.libs = ["percid"]
        # What uses percid stays loaded, as threads keep pointers to its critical sections.
        self.cpp_info.sharedlinkflags = ["-Wl,-z,nodelete"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["dl", "m", "pthread", "rt"]
