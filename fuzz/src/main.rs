//! libFuzzer's program, one for all targets: `AOP_FUZZ_TARGET` names the one. Built by `cargo xtask fuzz`; without
//! libFuzzer it only lists them.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
static TARGET: std::sync::LazyLock<fn(&[u8])> = std::sync::LazyLock::new(|| {
    let name = std::env::var("AOP_FUZZ_TARGET").unwrap_or_default();
    aop_fuzz::target(&name).unwrap_or_else(|| panic!("AOP_FUZZ_TARGET names no target: '{name}'"))
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));

#[cfg(not(fuzzing))]
fn main() {
    for (name, _) in aop_fuzz::TARGETS {
        println!("{name}");
    }
}
