//! Tells the binary what it was built from: commit, target, profile, compiler. For `tribunal --version` only.
//!
//! It never fails: what cannot be found out (no git, an unpacked archive) is left empty, and the binary says so.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = own.join("../..");
    tell("COMMIT", &commit(&root).unwrap_or_default());
    tell("TARGET", &env::var("TARGET").unwrap_or_default());
    tell("PROFILE", &profile().unwrap_or_default());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    tell("RUSTC", &said(Command::new(rustc).arg("--version")).unwrap_or_default());

    watch(&own.join("build.rs"));
    // Where these change the binary is built anew in any case.
    for item in fs::read_dir(own.join("..")).into_iter().flatten().flatten() {
        watch(&item.path().join("src"));
    }
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = said(git(&root).args(["rev-parse", "--git-path", name])) {
            watch(&root.join(path));
        }
    }
}

fn tell(name: &str, value: &str) {
    println!("cargo::rustc-env=TRIBUNAL_BUILD_{name}={value}");
}

/// A path that is not there would make cargo run this every time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// `1a2b3c4d5e6f`, with a `+` if files were changed since. None outside of our own checkout.
fn commit(root: &Path) -> Option<String> {
    let top = said(git(root).args(["rev-parse", "--show-toplevel"]))?;
    // An archive that was unpacked inside another repository has no commit of its own.
    if fs::canonicalize(top).ok()? != fs::canonicalize(root).ok()? {
        return None;
    }
    let commit = said(git(root).args(["rev-parse", "--short=12", "HEAD"]))?;
    let changed = said(git(root).args(["status", "--porcelain", "--untracked-files=no"]))?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+") })
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("--no-optional-locks").current_dir(root);
    git
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

/// `target/PROFILE/build/tribunal-HASH/out`: cargo itself only says debug or release.
fn profile() -> Option<String> {
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    Some(out.ancestors().nth(3)?.file_name()?.to_str()?.to_string())
}
