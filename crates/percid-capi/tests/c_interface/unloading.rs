//! Modules with critical sections stay loaded without linker options, because threads keep pointers
//! to the last critical section that they ran.

use crate::installation::{only_static, shared};
use crate::toolchain::{Build, WARNINGS, compilers};

#[test]
fn what_has_critical_sections_stays_loaded() {
    for compiler in compilers() {
        let host = Build::new(compiler.c, &["unload.c"], WARNINGS).arguments(&["-ldl"]).make();
        let stays = |options: &str, library: &str| {
            let options = format!("-std=gnu11 -O2 -shared -fPIC {WARNINGS} {options}");
            let build = Build::new(compiler.c, &["plugin.c"], &options);
            let build = match library {
                "shared" => build.against(shared()),
                // Hidden, so that it does not stay loaded because of its unique symbol.
                _ => build.against(only_static()).arguments(&["-Wl,--exclude-libs,ALL"]),
            };
            let module = build.make().path;
            let mut command = host.command();
            command.arg(&module).env("LD_LIBRARY_PATH", shared().libraries());
            match host.outcome(&mut command).1.as_str() {
                "stays\n" => true,
                "gone\n" => false,
                other => panic!("{}: {other}", module.display()),
            }
        };
        assert!(stays("", "shared"), "sections in the module");
        assert!(stays("-DPERCID_NO_INLINE", "static"), "sections in the library inside");
        assert!(!stays("-DPERCID_NO_INLINE", "shared"), "the control has none");
    }
}
