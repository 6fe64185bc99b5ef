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

use crate::{FAILURE_CODE, USAGE_CODE, cargo_command, run_step};

const FUZZ_TARGETS: &[&str] = &["answer", "board", "epics", "hook", "layout", "menu", "roster", "story"];
const DEFAULT_SECONDS: u32 = 10;
/// A fixed seed, so that a crash can be reproduced.
const SEED_OPTION: &str = "-seed=1";
const LIMIT_OPTIONS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"];

/// The compiler flags, for our code and all dependencies, that show libFuzzer what an input reaches.
const COVERAGE_FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let request = match FuzzRequest::parse_arguments(arguments) {
        Ok(request) => request,
        Err(usage_problem) => {
            eprintln!("xtask fuzz: {usage_problem}");
            return Ok(USAGE_CODE);
        }
    };
    // The target directory is the usual one, so that `cargo clean` removes the results, too.
    let host_triple = find_host_triple()?;
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let fuzz_dir = xtask::workspace_root().join(target_dir).join("fuzz");
    let exit_code = run_step("build the fuzz targets", || build_targets(&host_triple, &fuzz_dir))?;
    if exit_code != 0 || request.build_only {
        return Ok(exit_code);
    }
    let length_text = match request.length {
        FuzzLength::Seconds(seconds) => format!("{seconds} s"),
        FuzzLength::Runs(runs) => format!("{runs} runs"),
    };
    run_step(&format!("fuzz {}, {length_text} each", request.targets.join(", ")), || {
        fuzz_targets(&request, &fuzz_dir.join(&host_triple).join("release"), &fuzz_dir)
    })
}

/// Fuzzes as many targets at once as there are cores. Each is one process, and its result does not depend on the others.
fn fuzz_targets(request: &FuzzRequest, programs_dir: &Path, fuzz_dir: &Path) -> Result<u8> {
    let next_index = AtomicUsize::new(0);
    // The workers take targets from a common counter, so a fast one continues with the next.
    let run_worker = || -> Result<u8> {
        let mut worst_code = 0;
        while let Some(target) = request.targets.get(next_index.fetch_add(1, Ordering::Relaxed)) {
            worst_code = worst_code.max(fuzz_target(&programs_dir.join(target), target, fuzz_dir, request.length)?);
        }
        Ok(worst_code)
    };
    let core_count = thread::available_parallelism().map_or(1, usize::from);
    let exit_codes: Vec<Result<u8>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..core_count).map(|_| scope.spawn(run_worker)).collect();
        let worker_panicked = |_| bail!("a fuzz target could not be watched");
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(worker_panicked)).collect()
    });
    exit_codes.into_iter().try_fold(0, |worst_code, exit_code| Ok(worst_code.max(exit_code?)))
}

/// How long each target is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FuzzLength {
    Seconds(u32),
    Runs(u32),
}

/// What the user has asked for.
struct FuzzRequest {
    length: FuzzLength,
    targets: Vec<String>,
    build_only: bool,
}

impl FuzzRequest {
    fn parse_arguments(arguments: &[OsString]) -> Result<FuzzRequest, String> {
        let mut request =
            FuzzRequest { length: FuzzLength::Seconds(DEFAULT_SECONDS), targets: Vec::new(), build_only: false };
        let mut remaining_words = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(word_text) = remaining_words.next() {
            if word_text == "--seconds" || word_text == "--runs" {
                let limit_text = remaining_words.next().unwrap_or_default();
                // To libFuzzer zero seconds mean no limit, and zero runs mean that it tries the seeds alone.
                let limit = limit_text.parse().ok().filter(|limit| *limit > 0);
                let limit = limit.ok_or_else(|| format!("{word_text} takes a number for each target, from 1"))?;
                request.length =
                    if word_text == "--runs" { FuzzLength::Runs(limit) } else { FuzzLength::Seconds(limit) };
            } else if word_text == "--build-only" {
                request.build_only = true;
            } else if FUZZ_TARGETS.contains(&word_text.as_ref()) {
                request.targets.push(word_text.into_owned());
            } else {
                return Err(format!(
                    "there is no `{word_text}`, only --seconds N, --runs N, --build-only and targets: {}",
                    FUZZ_TARGETS.join(", ")
                ));
            }
        }
        // Without names all targets are fuzzed.
        if request.targets.is_empty() {
            request.targets = FUZZ_TARGETS.iter().map(ToString::to_string).collect();
        }
        Ok(request)
    }
}

/// Finds the host triple. Cargo builds for it by name, so that the flags do not reach build scripts.
fn find_host_triple() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let version_text = String::from_utf8_lossy(&output.stdout);
    let host = version_text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

fn build_targets(host_triple: &str, fuzz_dir: &Path) -> Result<u8> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    // Without this check cargo would fail much later with a message that does not name the cause.
    let compiler_status = Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !compiler_status.is_ok_and(|status| status.success()) {
        bail!(
            "there is no C++ compiler (`{}`), and libFuzzer is built by one: install g++ or clang++",
            compiler.display()
        );
    }
    let status = cargo_command()
        .args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", host_triple])
        .arg("--target-dir")
        .arg(fuzz_dir)
        .env("RUSTFLAGS", COVERAGE_FLAGS.join(" "))
        // This variable would take precedence over the flags above.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() { 0 } else { FAILURE_CODE })
}

fn fuzz_target(program: &Path, target_name: &str, fuzz_dir: &Path, length: FuzzLength) -> Result<u8> {
    let root = xtask::workspace_root();
    let (corpus_kind, limit_option) = match length {
        FuzzLength::Seconds(seconds) => ("corpus", format!("-max_total_time={seconds}")),
        FuzzLength::Runs(runs) => ("fresh", format!("-runs={runs}")),
    };
    let (corpus_dir, crashes_dir) = (fuzz_dir.join(corpus_kind).join(target_name), fuzz_dir.join("crashes"));
    // A reproducible run must not start from what earlier runs have found.
    if matches!(length, FuzzLength::Runs(_)) && corpus_dir.exists() {
        fs::remove_dir_all(&corpus_dir).with_context(|| format!("cannot remove {}", corpus_dir.display()))?;
    }
    for required_dir in [&corpus_dir, &crashes_dir] {
        fs::create_dir_all(required_dir).with_context(|| format!("cannot create {}", required_dir.display()))?;
    }
    let log_path = fuzz_dir.join(format!("{target_name}.log"));
    let log_file = fs::File::create(&log_path).with_context(|| format!("cannot write {}", log_path.display()))?;
    // Crashes of all targets go to one directory, with the target in the name.
    let mut artifact_option = OsString::from("-artifact_prefix=");
    artifact_option.push(crashes_dir.join(format!("{target_name}-")));
    let mut dictionary_option = OsString::from("-dict=");
    dictionary_option.push(root.join("fuzz/words.dict"));
    // libFuzzer adds new inputs to the first directory and only reads the second.
    let status = Command::new(program)
        .arg(limit_option)
        .args([SEED_OPTION].iter().chain(&LIMIT_OPTIONS))
        .args([artifact_option, dictionary_option])
        .arg(&corpus_dir)
        .arg(root.join("fuzz/seeds").join(target_name))
        .stdin(Stdio::null())
        .stdout(log_file.try_clone()?)
        .stderr(log_file)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let log_text = String::from_utf8_lossy(&fs::read(&log_path)?).into_owned();
    if status.success() {
        eprintln!("    {target_name}: {}", summarize_log(&log_text));
        return Ok(0);
    }
    // The report is printed at once, because another target may be reporting at the same time.
    let mut report_lines = vec![format!("    {target_name}: failed")];
    report_lines.extend(find_failure_lines(&log_text).into_iter().map(|line| format!("    {line}")));
    if let Some(crash_file) = log_text.lines().find_map(|line| line.split_once("Test unit written to ")) {
        report_lines.push(format!("    again: {} {}", program.display(), crash_file.1));
    }
    report_lines.push(format!("    all of it: {}", log_path.display()));
    eprintln!("{}", report_lines.join("\n"));
    Ok(FAILURE_CODE)
}

/// Summarizes a log by its last line: `41134 runs, 2071 edges, 1252 inputs worth keeping`.
fn summarize_log(log_text: &str) -> String {
    let done_line = log_text.lines().rev().find(|line| line.contains("DONE")).unwrap_or_default();
    let value_after =
        |label: &str| done_line.split_whitespace().skip_while(|field| *field != label).nth(1).unwrap_or("?");
    let runs = done_line.trim_start_matches('#').split_whitespace().next().unwrap_or("?");
    let inputs = value_after("corp:").split('/').next().unwrap_or("?");
    format!("{runs} runs, {} edges, {inputs} inputs worth keeping", value_after("cov:"))
}

/// Finds the lines of a failed run that tell what went wrong.
fn find_failure_lines(log_text: &str) -> Vec<&str> {
    let is_relevant = |line: &&str| {
        ["panicked at", "ERROR: libFuzzer", "SUMMARY", "assertion", "  left:", " right:"]
            .iter()
            .any(|marker| line.contains(marker))
    };
    let mut failure_lines: Vec<&str> = Vec::new();
    // The message of a panic is on the line after its place.
    let mut after_panic = false;
    for line in log_text.lines() {
        if after_panic || is_relevant(&line) {
            failure_lines.push(line);
        }
        after_panic = line.contains("panicked at");
    }
    // Without a known marker the end of the log is the best guess.
    if failure_lines.is_empty() {
        log_text.lines().rev().take(5).collect()
    } else {
        failure_lines.into_iter().take(12).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<(FuzzLength, usize), String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        FuzzRequest::parse_arguments(&arguments).map(|wish| (wish.length, wish.targets.len()))
    }

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(parse_words(&[]), Ok((FuzzLength::Seconds(DEFAULT_SECONDS), FUZZ_TARGETS.len())));
        assert_eq!(parse_words(&["--seconds", "3", "menu", "story"]), Ok((FuzzLength::Seconds(3), 2)));
        assert_eq!(parse_words(&["--runs", "9", "menu"]), Ok((FuzzLength::Runs(9), 1)));
        assert_eq!(parse_words(&["--build-only"]), Ok((FuzzLength::Seconds(DEFAULT_SECONDS), FUZZ_TARGETS.len())));
        for wrong in [&["--seconds"][..], &["--runs", "0"], &["--seconds", "0"], &["--seconds", "x"], &["menus"]] {
            assert!(parse_words(wrong).is_err(), "{wrong:?}");
        }
    }

    /// A target that is not in all three places is never run, or cannot be built.
    #[test]
    fn every_target_has_its_program_and_its_seeds() {
        let fuzz = xtask::workspace_root().join("fuzz");
        let manifest: toml::Table = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap().parse().unwrap();
        let bins: Vec<&str> =
            manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
        assert_eq!(bins, FUZZ_TARGETS);
        for target in FUZZ_TARGETS {
            assert!(fuzz.join("fuzz_targets").join(format!("{target}.rs")).is_file(), "{target}");
            assert!(fs::read_dir(fuzz.join("seeds").join(target)).unwrap().next().is_some(), "{target}");
        }
    }

    #[test]
    fn the_log_of_libfuzzer_is_summarized() {
        let done =
            "INFO: x\n#41134\tDONE   cov: 2071 ft: 8618 corp: 1252/341Kb lim: 458 exec/s: 2570\n## Recommended\n";
        assert_eq!(summarize_log(done), "41134 runs, 2071 edges, 1252 inputs worth keeping");
        assert_eq!(summarize_log(""), "? runs, ? edges, ? inputs worth keeping");
        let failed = "#1 NEW\nthread 'main' panicked at src/x.rs:1:2:\nindex out of bounds\nstack\nSUMMARY: libFuzzer: deadly signal\n";
        let expected_lines =
            ["thread 'main' panicked at src/x.rs:1:2:", "index out of bounds", "SUMMARY: libFuzzer: deadly signal"];
        assert_eq!(find_failure_lines(failed), expected_lines);
        assert_eq!(find_failure_lines("a\nb"), ["b", "a"]);
    }
}
