//! `cargo xtask bench`: measures what users notice and compares it with limits.
//!
//! The figures are CPU time as the kernel counts it, so that a busy machine does not change them, except where latency matters.
//! Times are judged as multiples of a [`calibration`] of the same run, so that a slow machine does not fail. What only the
//! product's own code can measure is in the bench `measures` of `tribunal-runner`; here the program is used from outside, as users
//! do. `--small` measures everything briefly, so that no bench stops working unnoticed.

mod binary_runs;
mod build_timings;
mod calibration;
mod handoff;
mod headless_loop;
mod hook;
mod library_measures;
mod scripted_project;
mod sprint_stories;
mod story_sessions;
mod table;
mod workspaces;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{FAILURE_CODE, USAGE_CODE, cargo_command};
use calibration::Calibration;
use table::{BenchRow, LimitRule, RowVerdict};

/// What a benchmark measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BenchSubject {
    /// The program that users run.
    Program,
    /// The product's own code, through the bench of `tribunal-runner`.
    Library,
    /// The build itself. It takes so long that it is measured only if it is named.
    Build,
}

/// A benchmark with its name.
struct BenchEntry {
    name: &'static str,
    subject: BenchSubject,
    run: fn(&BuiltPrograms) -> Result<Vec<BenchRow>>,
}

impl BenchEntry {
    const fn new(
        name: &'static str,
        subject: BenchSubject,
        run: fn(&BuiltPrograms) -> Result<Vec<BenchRow>>,
    ) -> BenchEntry {
        BenchEntry { name, subject, run }
    }
}

const BENCH_ENTRIES: &[BenchEntry] = &[
    BenchEntry::new("build", BenchSubject::Build, build_timings::measure_build),
    BenchEntry::new("start", BenchSubject::Program, binary_runs::measure_start),
    BenchEntry::new("overhead", BenchSubject::Library, library_measures::measure_overhead),
    BenchEntry::new("sandbox", BenchSubject::Library, library_measures::measure_sandbox),
    BenchEntry::new("handoff", BenchSubject::Program, handoff::measure_handoff),
    BenchEntry::new("loop", BenchSubject::Program, headless_loop::measure_headless_loop),
    BenchEntry::new("story", BenchSubject::Program, story_sessions::measure_story),
    BenchEntry::new("sprint", BenchSubject::Program, sprint_stories::measure_sprint),
    BenchEntry::new("large", BenchSubject::Program, sprint_stories::measure_large_story),
    BenchEntry::new("hook", BenchSubject::Program, hook::measure_hook),
    BenchEntry::new("copies", BenchSubject::Program, workspaces::measure_workspaces),
    BenchEntry::new("at-once", BenchSubject::Library, library_measures::measure_many_agents),
    BenchEntry::new("replay", BenchSubject::Library, library_measures::measure_replay),
    BenchEntry::new("runs", BenchSubject::Program, binary_runs::measure_many_runs),
    BenchEntry::new("masking", BenchSubject::Library, library_measures::measure_masking),
    BenchEntry::new("similarity", BenchSubject::Library, library_measures::measure_loop_check),
];

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BenchForm {
    #[default]
    Full,
    /// Briefly, with the release binary; everything else is built for tests. For machines that check every change.
    Small,
    /// Briefly, with programs that are built for tests. For working on the benches.
    Debug,
}

impl BenchForm {
    /// Which limits count for a benchmark.
    fn limit_rule(self, subject: BenchSubject) -> LimitRule {
        match (self, subject) {
            (Self::Full, _) => LimitRule::All,
            (Self::Small, BenchSubject::Program) => LimitRule::WithSlack,
            (Self::Small, BenchSubject::Library) => LimitRule::CountsOnly,
            // It builds one crate instead of all.
            (Self::Small, BenchSubject::Build) | (Self::Debug, _) => LimitRule::None,
        }
    }

    /// What to say about the limits at the end.
    fn describe_limits(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::Small => {
                Some("small form: numbers and memory keep their limits, CPU times of the program 4 times theirs")
            }
            Self::Debug => Some("built without optimising: these figures say only that they can be taken"),
        }
    }

    fn selects_entry(self, bench: &BenchEntry, bench_names: &[OsString]) -> bool {
        if bench_names.is_empty() {
            self == Self::Small || bench.subject != BenchSubject::Build
        } else {
            bench_names.iter().any(|bench_name| *bench_name == *bench.name)
        }
    }
}

/// The programs to measure, and how.
struct BuiltPrograms {
    /// The directory that contains `tribunal`.
    programs_dir: PathBuf,
    /// The directory that contains the agents of the test kit.
    agents_dir: PathBuf,
    form: BenchForm,
    /// The length of the sprint, if it was chosen.
    story_count: Option<u32>,
}

/// What was typed after `cargo xtask bench`.
#[derive(Debug, Default)]
struct BenchArguments {
    form: BenchForm,
    story_count: Option<u32>,
    bench_names: Vec<OsString>,
}

impl BenchArguments {
    fn parse_words(words: &[OsString]) -> Result<BenchArguments> {
        let mut parsed = BenchArguments::default();
        let mut remaining_words = words.iter();
        while let Some(word) = remaining_words.next() {
            if word == "--debug" {
                parsed.form = BenchForm::Debug;
            } else if word == "--small" {
                parsed.form = BenchForm::Small;
            } else if word == "--stories" {
                let typed_count = remaining_words.next().and_then(|count| count.to_str()?.parse::<u32>().ok());
                // There is nothing to measure between the stories of a sprint with one.
                let story_count = typed_count.filter(|count| *count > 1);
                parsed.story_count = Some(story_count.context("--stories needs a number from 2 on")?);
            } else {
                // Everything else is the name of a benchmark.
                parsed.bench_names.push(word.clone());
            }
        }
        Ok(parsed)
    }
}

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let BenchArguments { form, story_count, bench_names } = BenchArguments::parse_words(arguments)?;
    if let Some(unknown_bench) =
        bench_names.iter().find(|bench_name| !BENCH_ENTRIES.iter().any(|bench| **bench_name == *bench.name))
    {
        let known_names: Vec<&str> = BENCH_ENTRIES.iter().map(|bench| bench.name).collect();
        eprintln!("xtask bench: there is no `{}`, only {}", unknown_bench.display(), known_names.join(", "));
        return Ok(USAGE_CODE);
    }
    let selected: Vec<&BenchEntry> =
        BENCH_ENTRIES.iter().filter(|bench| form.selects_entry(bench, &bench_names)).collect();
    let built = BuiltPrograms {
        programs_dir: find_target_dir().join(if form == BenchForm::Debug { "debug" } else { "release" }),
        agents_dir: find_target_dir().join(if form == BenchForm::Full { "release" } else { "debug" }),
        form,
        story_count,
    };
    // A build is measured in a directory of its own; the small form looks at the binary that is there.
    if form == BenchForm::Small || selected.iter().any(|bench| bench.subject != BenchSubject::Build) {
        build_programs(form)?;
    }
    let mut problem_count = 0;
    for bench in selected {
        // One bench that fails must not hide what the others would show.
        problem_count += run_bench(bench, &built).unwrap_or_else(|error| {
            println!("{}: cannot be measured: {error:#}", bench.name);
            1
        });
    }
    if let Some(limits_text) = form.describe_limits() {
        println!("{limits_text}");
    }
    Ok(match problem_count {
        0 => 0,
        problem_count => {
            eprintln!("xtask bench: rows over their limit, or not measured: {problem_count}");
            FAILURE_CODE
        }
    })
}

/// Prints the rows of a benchmark, and returns how many of them are over their limit or could not be taken.
fn run_bench(bench: &BenchEntry, built: &BuiltPrograms) -> Result<usize> {
    let calibration_before = Calibration::measure_now().context("no calibration")?;
    let rows = (bench.run)(built)?;
    // The rows were taken: they are worth showing even if the second calibration fails.
    let calibration =
        Calibration::measure_now().map_or(calibration_before, |after| calibration_before.mean_with(after));
    let rule = built.form.limit_rule(bench.subject);
    println!("{}: {calibration}", bench.name);
    let mut problem_count = 0;
    for row in rows {
        println!("  {}", row.to_line(&calibration, rule));
        let verdict = row.judge_limit(&calibration, rule);
        problem_count += usize::from(matches!(verdict, RowVerdict::Exceeded | RowVerdict::Failed));
    }
    Ok(problem_count)
}

/// Builds the programs; this is not part of any measurement.
fn build_programs(form: BenchForm) -> Result<()> {
    let packages = ["-p", "tribunal", "-p", "tribunal-testkit"];
    // Together with a bench of the same workspace, programs are built as they are for the tests, which is done already where the
    // tests have run.
    let as_for_tests = ["--workspace", "--bench", "measures", "--bin", "stamping-agent", "--bin", "looping-agent"];
    let as_for_tests = [&as_for_tests[..], &["--bin", "developing-agent"]].concat();
    let builds = match form {
        BenchForm::Full => vec![[&["--release"], &packages[..]].concat()],
        BenchForm::Small => vec![vec!["--release"], as_for_tests],
        BenchForm::Debug => vec![[&as_for_tests[..], &["--bin", "tribunal"]].concat()],
    };
    for build_args in builds {
        let status = cargo_command().args(["build", "--quiet", "--locked"]).args(build_args).status();
        if !status.context("cannot start cargo")?.success() {
            bail!("the programs to measure cannot be built");
        }
    }
    Ok(())
}

fn find_target_dir() -> PathBuf {
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    xtask::workspace_root().join(target_dir)
}

impl BuiltPrograms {
    fn program_path(&self, program_name: &str) -> PathBuf {
        self.programs_dir.join(program_name)
    }

    fn agent_path(&self, program_name: &str) -> PathBuf {
        self.agents_dir.join(program_name)
    }

    /// Whether to show only that everything can be measured.
    fn is_short(&self) -> bool {
        self.form != BenchForm::Full
    }

    fn tribunal_command(&self) -> Command {
        let mut command = Command::new(self.program_path("tribunal"));
        // A build with kill points would obey this variable and end in the middle of a measurement.
        command.env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1");
        command
    }

    /// The directory for files that take long to create and can be used again.
    fn bench_dir(&self) -> PathBuf {
        self.programs_dir.with_file_name("bench")
    }

    /// Runs the bench of `tribunal-runner` and returns its values by name.
    fn run_measures(&self, bench_args: &[&str]) -> Result<Vec<(String, f64)>> {
        let mut bench_command = cargo_command();
        bench_command.args(["bench", "--quiet", "--locked", "--bench", "measures"]);
        if self.is_short() {
            // The whole workspace, because its features are those of the tests: so nothing is built twice.
            bench_command.args(["--workspace", "--profile", "dev", "--", "--short"]);
        } else {
            bench_command.args(["-p", "tribunal-runner", "--"]);
        }
        let output = bench_command.args(bench_args).stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("`measures {}` failed", bench_args.join(" "));
        }
        let output_text = String::from_utf8(output.stdout)?;
        // Each measurement is a line of name and value, separated by a tab; other lines are ignored.
        let lines = output_text.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(measure_name, value)| Ok((measure_name.to_owned(), value.parse()?))).collect()
    }
}

/// Finds the value of this name.
fn find_value(values: &[(String, f64)], measure_name: &str) -> Result<f64> {
    let named_value = values.iter().find(|(known_name, _)| known_name == measure_name);
    named_value.map(|(_, value)| *value).with_context(|| format!("nothing was said about `{measure_name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_sprint_is_not_taken_for_a_name() {
        let parse = |words: &[&str]| BenchArguments::parse_words(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let parsed = parse(&["sprint", "--stories", "500", "--debug"]).unwrap();
        assert_eq!((parsed.bench_names.len(), parsed.story_count, parsed.form), (1, Some(500), BenchForm::Debug));
        assert_eq!(parse(&["--small"]).unwrap().form, BenchForm::Small);
        for wrong_words in [&["--stories"][..], &["--stories", "1"], &["--stories", "sprint"]] {
            assert!(parse(wrong_words).is_err(), "{wrong_words:?}");
        }
    }

    #[test]
    fn a_whole_build_is_measured_only_if_it_is_named() {
        let select = |form: BenchForm, names: &[&str]| {
            let names: Vec<OsString> = names.iter().map(OsString::from).collect();
            let selected = BENCH_ENTRIES.iter().filter(|bench| form.selects_entry(bench, &names));
            selected.map(|bench| bench.name).collect::<Vec<_>>()
        };
        assert!(!select(BenchForm::Full, &[]).contains(&"build"));
        assert_eq!(select(BenchForm::Full, &["build"]), ["build"]);
        assert_eq!(select(BenchForm::Small, &[]).len(), BENCH_ENTRIES.len());
    }

    #[test]
    fn limits_count_where_what_was_built_can_keep_them() {
        assert_eq!(BenchForm::Full.limit_rule(BenchSubject::Build), LimitRule::All);
        assert_eq!(BenchForm::Small.limit_rule(BenchSubject::Program), LimitRule::WithSlack);
        assert_eq!(BenchForm::Small.limit_rule(BenchSubject::Library), LimitRule::CountsOnly);
        assert_eq!(BenchForm::Debug.limit_rule(BenchSubject::Program), LimitRule::None);
    }
}
