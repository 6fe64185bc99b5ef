//! Measures a cold release build: what our crates take beside their dependencies, and the size of the binary.
//!
//! `cargo build --timings` writes a page for people. Its data is JSON inside of it, the only form in which the stable cargo says
//! how long a crate took. The seconds are from the start to the end of a crate, while others are built beside it; they are
//! compared with those of other crates of the same build, never with a limit of their own.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::BuiltPrograms;
use super::table::{BenchFigure, BenchRow};
use crate::cargo_command;

const UNITS_START: &str = "const UNIT_DATA = ";
const UNITS_END: &str = "\n];";
/// The only crate that the small form builds: it depends on nothing, and takes seconds.
const SMALL_CRATE: &str = "tribunal-guard";
const STORE_CRATE: &str = "tribunal-store";
const SQLITE_CRATE: &str = "libsqlite3-sys";
/// How cargo calls the run of a build script. That of the SQLite crate compiles SQLite.
const SCRIPT_RUN: &str = "run-custom-build";
const BYTES_PER_MEGABYTE: f64 = 1e6;
/// The seconds of our crates, as a multiple of those of the dependencies; the same for the store and SQLite.
const RATIO_LIMIT: BenchFigure = BenchFigure::Ratio(1.0);
const SIZE_LIMIT: BenchFigure = BenchFigure::Megabytes(24.0);

/// Something that cargo built or ran: a crate, a build script.
#[derive(Debug, PartialEq)]
struct BuildUnit {
    package: String,
    seconds: f64,
    is_script_run: bool,
}

impl BuildUnit {
    fn from_json(unit: &Value) -> Result<BuildUnit> {
        let package = unit["name"].as_str().context("a unit of the build without a name")?;
        let seconds = unit["duration"].as_f64().with_context(|| format!("{package} has no duration"))?;
        Ok(BuildUnit { package: package.to_owned(), seconds, is_script_run: unit["mode"] == SCRIPT_RUN })
    }

    fn is_ours(&self) -> bool {
        self.package == "tribunal" || self.package.starts_with("tribunal-")
    }
}

/// Reads the units from the page that `cargo build --timings` writes.
fn parse_timings(page: &str) -> Result<Vec<BuildUnit>> {
    let (_, data) = page.split_once(UNITS_START).context("the page of timings has no `UNIT_DATA`")?;
    let (units_text, _) = data.split_once(UNITS_END).context("`UNIT_DATA` of the timings has no end")?;
    // The end that was searched for includes the bracket.
    let units: Vec<Value> =
        serde_json::from_str(&format!("{units_text}]")).context("`UNIT_DATA` of the timings is not JSON")?;
    units.iter().map(BuildUnit::from_json).collect()
}

/// Adds up the seconds of the units that are meant.
fn sum_seconds(units: &[BuildUnit], is_meant: impl Fn(&BuildUnit) -> bool) -> f64 {
    units.iter().filter(|unit| is_meant(unit)).map(|unit| unit.seconds).sum()
}

/// Compares two sums of seconds. A build without one of them says nothing about the other.
fn compare_seconds(label: &str, own_seconds: f64, other_seconds: f64) -> BenchRow {
    if own_seconds > 0.0 && other_seconds > 0.0 {
        BenchRow::new(label, BenchFigure::Ratio(own_seconds / other_seconds), RATIO_LIMIT)
    } else {
        BenchRow::from_note(label, "not measured: this build has only one of them")
    }
}

/// Our crates with the seconds of all their units, the slowest first.
fn list_own_crates(units: &[BuildUnit]) -> Vec<(&str, f64)> {
    let mut own_crates: Vec<(&str, f64)> = Vec::new();
    for unit in units.iter().filter(|unit| unit.is_ours()) {
        match own_crates.iter_mut().find(|(package, _)| *package == unit.package) {
            Some((_, seconds)) => *seconds += unit.seconds,
            None => own_crates.push((&unit.package, unit.seconds)),
        }
    }
    own_crates.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    own_crates
}

/// The rows that follow from the units alone.
fn create_unit_rows(units: &[BuildUnit]) -> Vec<BenchRow> {
    let own_seconds = sum_seconds(units, BuildUnit::is_ours);
    let dependency_seconds = sum_seconds(units, |unit| !unit.is_ours());
    let store_seconds = sum_seconds(units, |unit| unit.package == STORE_CRATE);
    let sqlite_seconds = sum_seconds(units, |unit| unit.package == SQLITE_CRATE && unit.is_script_run);
    let show_seconds = |label: &str, seconds| BenchRow::without_limit(label, BenchFigure::Seconds(seconds));
    let mut rows = vec![
        show_seconds("build: our crates", own_seconds),
        show_seconds("build: their dependencies", dependency_seconds),
        compare_seconds("build: our crates beside their dependencies", own_seconds, dependency_seconds),
        show_seconds("build: SQLite, by the build script of its crate", sqlite_seconds),
        compare_seconds("build: the store beside SQLite", store_seconds, sqlite_seconds),
    ];
    rows.extend(
        list_own_crates(units).into_iter().map(|(package, seconds)| show_seconds(&format!("  {package}"), seconds)),
    );
    rows
}

fn create_size_row(binary: &Path) -> Result<BenchRow> {
    let size = fs::metadata(binary).with_context(|| format!("cannot read {}", binary.display()))?.len();
    Ok(BenchRow::new("build: size of the binary", BenchFigure::Megabytes(size as f64 / BYTES_PER_MEGABYTE), SIZE_LIMIT))
}

/// Builds in a directory of its own, which is cold, and removes it afterwards.
pub fn measure_build(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    fs::create_dir_all(built.bench_dir())?;
    // Beside the other files of the benches: a directory for temporary files may be in memory.
    let target_dir = TempDir::new_in(built.bench_dir())?;
    let mut build_command = cargo_command();
    build_command
        .args(["build", "--quiet", "--release", "--locked", "--timings", "--target-dir"])
        .arg(target_dir.path());
    if built.is_short() {
        build_command.args(["--package", SMALL_CRATE]);
    }
    // A cache of crates would make the build warm, and other settings would make other crates of them.
    for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        build_command.env_remove(name);
    }
    build_command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    ensure!(build_command.status().context("cannot start cargo")?.success(), "the release build failed");
    let page_path = target_dir.path().join("cargo-timings/cargo-timing.html");
    let page = fs::read_to_string(&page_path).with_context(|| format!("cannot read {}", page_path.display()))?;
    let units = parse_timings(&page)?;
    ensure!(units.iter().any(BuildUnit::is_ours), "the timings name none of our crates");
    let mut rows = create_unit_rows(&units);
    let binary =
        if built.is_short() { built.program_path("tribunal") } else { target_dir.path().join("release/tribunal") };
    rows.push(BenchRow::from_result("build: size of the binary", create_size_row(&binary)));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::calibration::tests::sample_calibration;
    use super::super::table::{LimitRule, RowVerdict};
    use super::*;

    /// The parts of a page of cargo 1.95 that matter, with what stands around them.
    const PAGE: &str = r#"<script>
DURATION = 567;
const UNIT_DATA = [
  {
    "i": 1, "name": "serde", "version": "1.0.228", "mode": "todo", "target": "", "features": ["alloc"],
    "start": 0.16, "duration": 6.0, "unblocked_units": [75], "unblocked_rmeta_units": [], "sections": null
  },
  {
    "i": 2, "name": "libsqlite3-sys", "mode": "todo", "target": " build-script", "start": 0.1, "duration": 0.5, "sections": null
  },
  {
    "i": 3, "name": "libsqlite3-sys", "mode": "run-custom-build", "target": " build-script (run)", "start": 1.0,
    "duration": 20.0, "sections": null
  },
  {
    "i": 4, "name": "tribunal-store", "mode": "todo", "target": "", "start": 20.0, "duration": 30.0,
    "sections": [["frontend", {"start": 0.0, "end": 3.73}], ["codegen", {"start": 3.73, "end": 30.0}]]
  },
  {
    "i": 5, "name": "tribunal", "mode": "run-custom-build", "target": " build-script (run)", "start": 1.0, "duration": 0.5
  },
  {
    "i": 6, "name": "tribunal", "mode": "todo", "target": " tribunal \"bin\"", "start": 50.0, "duration": 40.0
  }
];
const CONCURRENCY_DATA = [
  { "t": 0.0, "active": 1 }
];
</script>"#;

    fn list_lines(units: &[BuildUnit]) -> Vec<String> {
        let rows = create_unit_rows(units);
        let lines = rows.iter().map(|row| row.to_line(&sample_calibration(), LimitRule::All));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn the_page_says_how_long_each_unit_took() {
        let units = parse_timings(PAGE).unwrap();
        let packages: Vec<&str> = units.iter().map(|unit| unit.package.as_str()).collect();
        assert_eq!(packages, ["serde", "libsqlite3-sys", "libsqlite3-sys", "tribunal-store", "tribunal", "tribunal"]);
        assert_eq!(units[2], BuildUnit { package: "libsqlite3-sys".into(), seconds: 20.0, is_script_run: true });
    }

    #[test]
    fn ours_are_compared_with_the_others() {
        assert_eq!(
            list_lines(&parse_timings(PAGE).unwrap()),
            [
                "build: our crates 70.5 s",
                "build: their dependencies 26.5 s",
                "build: our crates beside their dependencies 2.66 ×, at most 1.00 × over",
                "build: SQLite, by the build script of its crate 20.0 s",
                "build: the store beside SQLite 1.50 ×, at most 1.00 × over",
                "tribunal 40.5 s",
                "tribunal-store 30.0 s",
            ]
        );
    }

    #[test]
    fn a_build_without_dependencies_has_no_ratio() {
        let guard_unit = BuildUnit { package: "tribunal-guard".into(), seconds: 5.0, is_script_run: false };
        assert!(list_lines(std::slice::from_ref(&guard_unit))[1].ends_with(" 0.0 s"));
        let rows = create_unit_rows(&[guard_unit]);
        let verdicts = rows.iter().map(|row| row.judge_limit(&sample_calibration(), LimitRule::All));
        assert!(verdicts.into_iter().all(|verdict| verdict == RowVerdict::NotJudged));
    }

    #[test]
    fn a_page_of_another_form_is_an_error() {
        for (page, problem) in [
            ("<script></script>", "no `UNIT_DATA`"),
            ("const UNIT_DATA = [", "no end"),
            ("const UNIT_DATA = [\n  {\n];", "not JSON"),
            ("const UNIT_DATA = [\n  {\"name\": \"serde\"}\n];", "serde has no duration"),
            ("const UNIT_DATA = [\n  {\"duration\": 1.0}\n];", "without a name"),
        ] {
            let error = parse_timings(page).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
