# An overlay port of the sources that it lies in: vcpkg install percid --overlay-ports=packaging/vcpkg
# Cargo must be installed.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# It is optimised in any case, and C knows no other library in debug builds.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS "-DPERCID_INSTALL_CMAKEDIR=share/${PORT}")
vcpkg_cmake_install()
vcpkg_fixup_pkgconfig()

# vcpkg has its own list.
file(REMOVE "${CURRENT_PACKAGES_DIR}/lib/percid/manifest")
file(RENAME "${CURRENT_PACKAGES_DIR}/lib/percid/valgrind.supp" "${CURRENT_PACKAGES_DIR}/share/${PORT}/valgrind.supp")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/percid")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE")
