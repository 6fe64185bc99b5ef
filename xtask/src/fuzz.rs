//! `cargo xtask fuzz [--seconds N | --runs N | --build-only] [TARGET…]`: feeds random bytes to every reader of files and
//! answers.
//!
//! It uses libFuzzer on the toolchain that builds everything else: compiler flags turn the coverage instrumentation on. No
//! sanitizer watches the memory, because the readers contain no `unsafe`; the fuzzer finds panics, hangs, excessive memory, and
//! broken rules of the harness. The harness is `fuzz`, a workspace of its own, and starts from `fuzz/seeds`. Programs, corpus
//! and logs are below `target/fuzz`, and the next run continues with them; with `--runs` it starts from the seeds alone and
//! ends after that many inputs, so that it is the same each time and everywhere.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::{FAILED, MISUSED, cargo, step};

const TARGETS: &[&str] = &["answer", "board", "epics", "hook", "layout", "menu", "roster", "story"];
const SECONDS: u32 = 10;
/// A fixed seed, so that a crash can be reproduced.
const SEED: &str = "-seed=1";
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"];

/// The compiler flags, for our code and all dependencies, that show libFuzzer what an input reaches.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let wish = match Wish::read(arguments) {
        Ok(wish) => wish,
        Err(misused) => {
            eprintln!("xtask fuzz: {misused}");
            return Ok(MISUSED);
        }
    };
    // The target directory is the usual one, so that `cargo clean` removes the results, too.
    let triple = host()?;
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = xtask::root().join(built).join("fuzz");
    let code = step("build the fuzz targets", || build(&triple, &folder))?;
    if code != 0 || wish.build_only {
        return Ok(code);
    }
    let length = match wish.length {
        Length::Seconds(seconds) => format!("{seconds} s"),
        Length::Runs(runs) => format!("{runs} runs"),
    };
    step(&format!("fuzz {}, {length} each", wish.targets.join(", ")), || {
        fuzz_all(&wish, &folder.join(&triple).join("release"), &folder)
    })
}

/// Fuzzes as many targets at once as there are cores. Each is one process, and its result does not depend on the others.
fn fuzz_all(wish: &Wish, programs: &Path, folder: &Path) -> Result<u8> {
    let next = AtomicUsize::new(0);
    // The workers take targets from a common counter, so a fast one continues with the next.
    let work = || -> Result<u8> {
        let mut worst = 0;
        while let Some(target) = wish.targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            worst = worst.max(fuzz(&programs.join(target), target, folder, wish.length)?);
        }
        Ok(worst)
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let codes: Vec<Result<u8>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let panicked = |_| bail!("a fuzz target could not be watched");
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(panicked)).collect()
    });
    codes.into_iter().try_fold(0, |worst, code| Ok(worst.max(code?)))
}

/// How long each target is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Seconds(u32),
    Runs(u32),
}

/// What the user has asked for.
struct Wish {
    length: Length,
    targets: Vec<String>,
    build_only: bool,
}

impl Wish {
    fn read(arguments: &[OsString]) -> Result<Wish, String> {
        let mut wish = Wish { length: Length::Seconds(SECONDS), targets: Vec::new(), build_only: false };
        let mut words = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(word) = words.next() {
            if word == "--seconds" || word == "--runs" {
                let number = words.next().unwrap_or_default();
                // Zero would mean "without a limit" to libFuzzer.
                let number = number.parse().ok().filter(|number| *number > 0);
                let number =
                    number.ok_or_else(|| format!("{word} takes a number for each target, from 1"))?;
                wish.length = if word == "--runs" { Length::Runs(number) } else { Length::Seconds(number) };
            } else if word == "--build-only" {
                wish.build_only = true;
            } else if TARGETS.contains(&word.as_ref()) {
                wish.targets.push(word.into_owned());
            } else {
                return Err(format!(
                    "there is no `{word}`, only --seconds N, --runs N, --build-only and targets: {}",
                    TARGETS.join(", ")
                ));
            }
        }
        // Without names all targets are fuzzed.
        if wish.targets.is_empty() {
            wish.targets = TARGETS.iter().map(ToString::to_string).collect();
        }
        Ok(wish)
    }
}

/// Finds the host triple. Cargo builds for it by name, so that the flags do not reach build scripts.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

fn build(triple: &str, folder: &Path) -> Result<u8> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    // Without this check cargo would fail much later with a message that does not name the cause.
    let there = Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        bail!(
            "there is no C++ compiler (`{}`), and libFuzzer is built by one: install g++ or clang++",
            compiler.display()
        );
    }
    let status = cargo()
        .args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", triple])
        .arg("--target-dir")
        .arg(folder)
        .env("RUSTFLAGS", FLAGS.join(" "))
        // This variable would take precedence over the flags above.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() { 0 } else { FAILED })
}

fn fuzz(program: &Path, target: &str, folder: &Path, length: Length) -> Result<u8> {
    let root = xtask::root();
    let (kept, limit) = match length {
        Length::Seconds(seconds) => ("corpus", format!("-max_total_time={seconds}")),
        Length::Runs(runs) => ("fresh", format!("-runs={runs}")),
    };
    let (corpus, crashes) = (folder.join(kept).join(target), folder.join("crashes"));
    // A reproducible run must not start from what earlier runs have found.
    if matches!(length, Length::Runs(_)) && corpus.exists() {
        fs::remove_dir_all(&corpus).with_context(|| format!("cannot remove {}", corpus.display()))?;
    }
    for made in [&corpus, &crashes] {
        fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    let log_path = folder.join(format!("{target}.log"));
    let log = fs::File::create(&log_path).with_context(|| format!("cannot write {}", log_path.display()))?;
    // Crashes of all targets go to one directory, with the target in the name.
    let mut prefix = OsString::from("-artifact_prefix=");
    prefix.push(crashes.join(format!("{target}-")));
    let mut dictionary = OsString::from("-dict=");
    dictionary.push(root.join("fuzz/words.dict"));
    // libFuzzer adds new inputs to the first directory and only reads the second.
    let status = Command::new(program)
        .arg(limit)
        .args([SEED].iter().chain(&LIMITS))
        .args([prefix, dictionary])
        .arg(&corpus)
        .arg(root.join("fuzz/seeds").join(target))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&fs::read(&log_path)?).into_owned();
    if status.success() {
        eprintln!("    {target}: {}", summary(&said));
        return Ok(0);
    }
    // The report is printed at once, because another target may be reporting at the same time.
    let mut lines = vec![format!("    {target}: failed")];
    lines.extend(telling(&said).into_iter().map(|line| format!("    {line}")));
    if let Some(file) = said.lines().find_map(|line| line.split_once("Test unit written to ")) {
        lines.push(format!("    again: {} {}", program.display(), file.1));
    }
    lines.push(format!("    all of it: {}", log_path.display()));
    eprintln!("{}", lines.join("\n"));
    Ok(FAILED)
}

/// Summarizes a log by its last line: `41134 runs, 2071 edges, 1252 inputs worth keeping`.
fn summary(said: &str) -> String {
    let done = said.lines().rev().find(|line| line.contains("DONE")).unwrap_or_default();
    let behind = |word: &str| done.split_whitespace().skip_while(|part| *part != word).nth(1).unwrap_or("?");
    let runs = done.trim_start_matches('#').split_whitespace().next().unwrap_or("?");
    let inputs = behind("corp:").split('/').next().unwrap_or("?");
    format!("{runs} runs, {} edges, {inputs} inputs worth keeping", behind("cov:"))
}

/// Finds the lines of a failed run that tell what went wrong.
fn telling(said: &str) -> Vec<&str> {
    let about = |line: &&str| {
        ["panicked at", "ERROR: libFuzzer", "SUMMARY", "assertion", "  left:", " right:"]
            .iter()
            .any(|word| line.contains(word))
    };
    let mut lines: Vec<&str> = Vec::new();
    // The message of a panic is on the line after its place.
    let mut after_panic = false;
    for line in said.lines() {
        if after_panic || about(&line) {
            lines.push(line);
        }
        after_panic = line.contains("panicked at");
    }
    // Without a known marker the end of the log is the best guess.
    if lines.is_empty() { said.lines().rev().take(5).collect() } else { lines.into_iter().take(12).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<(Length, usize), String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        Wish::read(&arguments).map(|wish| (wish.length, wish.targets.len()))
    }

    #[test]
    fn what_is_wished_for_is_read() {
        assert_eq!(words(&[]), Ok((Length::Seconds(SECONDS), TARGETS.len())));
        assert_eq!(words(&["--seconds", "3", "menu", "story"]), Ok((Length::Seconds(3), 2)));
        assert_eq!(words(&["--runs", "9", "menu"]), Ok((Length::Runs(9), 1)));
        assert_eq!(words(&["--build-only"]), Ok((Length::Seconds(SECONDS), TARGETS.len())));
        for wrong in
            [&["--seconds"][..], &["--runs", "0"], &["--seconds", "0"], &["--seconds", "x"], &["menus"]]
        {
            assert!(words(wrong).is_err(), "{wrong:?}");
        }
    }

    /// A target that is not in all three places is never run, or cannot be built.
    #[test]
    fn every_target_has_its_program_and_its_seeds() {
        let fuzz = xtask::root().join("fuzz");
        let manifest: toml::Table = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap().parse().unwrap();
        let bins: Vec<&str> =
            manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
        assert_eq!(bins, TARGETS);
        for target in TARGETS {
            assert!(fuzz.join("fuzz_targets").join(format!("{target}.rs")).is_file(), "{target}");
            assert!(fs::read_dir(fuzz.join("seeds").join(target)).unwrap().next().is_some(), "{target}");
        }
    }

    #[test]
    fn what_libfuzzer_says_is_told_in_a_line() {
        let done = "INFO: x\n#41134\tDONE   cov: 2071 ft: 8618 corp: 1252/341Kb lim: 458 exec/s: 2570\n## Recommended\n";
        assert_eq!(summary(done), "41134 runs, 2071 edges, 1252 inputs worth keeping");
        assert_eq!(summary(""), "? runs, ? edges, ? inputs worth keeping");
        let failed = "#1 NEW\nthread 'main' panicked at src/x.rs:1:2:\nindex out of bounds\nstack\nSUMMARY: libFuzzer: deadly signal\n";
        let told = [
            "thread 'main' panicked at src/x.rs:1:2:",
            "index out of bounds",
            "SUMMARY: libFuzzer: deadly signal",
        ];
        assert_eq!(telling(failed), told);
        assert_eq!(telling("a\nb"), ["b", "a"]);
    }
}
