//! Damaged journals: runs of every kind are killed at several places, and then something happens to the files of the journal.
//! Either the run is resumed and reaches the same result, or every command says what is damaged, with exit code 5; then
//! `tribunal recover` saves what is left. Going on with less is never allowed. A sample of the combinations is tried here;
//! `cargo xtask crash` tries all and prints them as a table, and `cargo xtask crash --random N` tries N random ones of each kind.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    os::unix::fs::FileExt,
    panic::{RefUnwindSafe, catch_unwind},
    path::Path,
    process::Output,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tribunal_testkit::Dice;

use crate::{common::Sandbox, crash::REVIEW_KIND, crash_children::PARENT_KIND, crash_loop::LOOP_KIND};

/// A kind of run, as these tests use it.
#[derive(Clone, Copy)]
pub(crate) struct KilledKind {
    pub(crate) name: &'static str,
    pub(crate) new_sandbox: fn() -> Sandbox,
    /// Starts a run that is killed at a point.
    pub(crate) start: fn(&Sandbox, &str) -> Output,
    pub(crate) resume: fn(&Sandbox) -> Output,
    /// The state of the run when it has done what it can.
    pub(crate) done_state: &'static str,
    /// Describes everything that must be the same however often the program was killed.
    pub(crate) describe_result: fn(&Sandbox) -> String,
    pub(crate) list_fault_points: fn(&Sandbox) -> Vec<String>,
}

const KINDS: [KilledKind; 3] = [REVIEW_KIND, LOOP_KIND, PARENT_KIND];

/// Where a run is killed: after this share of its fault points, in percent. The last one is not killed.
const PLACES: [(&str, usize); 4] =
    [("at the start", 3), ("in the middle", 50), ("near the end", 93), ("not at all", 100)];

struct JournalDamage {
    name: &'static str,
    apply: fn(&Path),
}

const DAMAGES: [JournalDamage; 10] = [
    JournalDamage { name: "none", apply: |_| {} },
    JournalDamage { name: "log gone", apply: |home| drop(fs::remove_file(home.join("journal.db-wal"))) },
    JournalDamage { name: "log zero", apply: |home| overwrite(&home.join("journal.db-wal"), 0, u64::MAX, 0) },
    JournalDamage { name: "log cut", apply: |home| cut_file(&home.join("journal.db-wal"), 2) },
    JournalDamage { name: "file cut", apply: |home| cut_file(&home.join("journal.db"), 2) },
    JournalDamage { name: "file gone", apply: |home| fs::remove_file(home.join("journal.db")).unwrap() },
    JournalDamage {
        name: "file a dir",
        apply: |home| {
            fs::remove_file(home.join("journal.db")).unwrap();
            fs::create_dir(home.join("journal.db")).unwrap();
        },
    },
    JournalDamage {
        name: "file text",
        apply: |home| fs::write(home.join("journal.db"), "notes\n".repeat(900)).unwrap(),
    },
    JournalDamage { name: "bytes", apply: change_entries },
    JournalDamage { name: "heads gone", apply: |home| fs::remove_dir_all(home.join("heads")).unwrap() },
];

fn cut_file(file_path: &Path, divisor: u64) {
    if let Ok(file) = fs::OpenOptions::new().write(true).open(file_path) {
        file.set_len(file.metadata().unwrap().len() / divisor).unwrap();
    }
}

fn overwrite(file_path: &Path, from: u64, length: u64, byte: u8) {
    if let Ok(file) = fs::OpenOptions::new().write(true).open(file_path) {
        let length = length.min(file.metadata().unwrap().len().saturating_sub(from));
        file.write_all_at(&vec![byte; usize::try_from(length).unwrap()], from).unwrap();
    }
}

/// Changes a byte in the text of entries, wherever they are stored.
fn change_entries(home: &Path) {
    for file_name in ["journal.db", "journal.db-wal"] {
        let file_bytes = fs::read(home.join(file_name)).unwrap_or_default();
        let needle = b"\"kind\":\"effect_finished\"";
        let positions = file_bytes.windows(needle.len()).enumerate().filter(|(_, bytes)| bytes == needle);
        for (position, _) in positions.skip(2).step_by(5) {
            overwrite(&home.join(file_name), position as u64 + 10, 1, b'x');
        }
    }
}

/// What became of a killed run whose journal was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellOutcome {
    /// It reached the same result.
    Same,
    /// Every command refused to go on, and the journal was rebuilt.
    Told,
}

/// Kills a run, damages its journal, and checks that nothing is lost in silence.
fn try_cell(kind: &KilledKind, fault_point: &str, damage: &JournalDamage, reference: &str) -> CellOutcome {
    let context = format!("{} killed {fault_point}, {}", kind.name, damage.name);
    let sandbox = (kind.new_sandbox)();
    (kind.start)(&sandbox, fault_point);
    let home = sandbox.path_of(".tribunal");
    (damage.apply)(&home);
    let status = sandbox.run_tribunal(&["status"]);
    let is_told = |exit_code: Option<i32>, stderr: &str| exit_code == Some(5) && stderr.contains("is damaged");
    if status.exit_code == Some(0) {
        let is_done = sandbox.run_json(&["runs"])["runs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["parent"].is_null() && row["state"] == kind.done_state);
        // A run that was killed before its start was recorded is started again.
        let continue_run =
            || if sandbox.run_ids().is_empty() { (kind.start)(&sandbox, "") } else { (kind.resume)(&sandbox) };
        let resumed = (!is_done).then(continue_run);
        let resumed_text = resumed.as_ref().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        if !resumed.as_ref().is_some_and(|output| is_told(output.status.code(), resumed_text.as_ref().unwrap())) {
            // A run that has ended is only read.
            let is_log_told = |run_id: &String| {
                let log = sandbox.run_tribunal(&["log", run_id]);
                is_told(log.exit_code, &log.stderr)
            };
            if is_done && sandbox.run_ids().iter().any(is_log_told) {
                return recover_runs(&sandbox, &context);
            }
            let result = (kind.describe_result)(&sandbox);
            assert_eq!(result, reference, "{context}: {resumed_text:?}");
            return CellOutcome::Same;
        }
    } else {
        assert!(is_told(status.exit_code, &status.stderr), "{context}: {status:?}");
        // Changed entries are noticed by the commands that read them, a run that is cut off by all.
        let is_cut_off = sandbox.run_tribunal(&["runs"]).exit_code == Some(5);
        for args in [&["log"][..], &["findings"], &["resume"], &["decisions"], &["gc"]].iter().filter(|_| is_cut_off) {
            let output = sandbox.run_tribunal(args);
            assert!(is_told(output.exit_code, &output.stderr), "{context}: {args:?}: {output:?}");
        }
    }
    recover_runs(&sandbox, &context)
}

/// Recovers a damaged journal: the user's files stay as they are, and the project can be used again.
fn recover_runs(sandbox: &Sandbox, context: &str) -> CellOutcome {
    let listed = sandbox.run_tribunal(&["recover"]);
    assert_eq!(listed.exit_code, Some(5), "{context}: {listed:?}");
    let export_dir = sandbox.path_of("../export");
    let exported = sandbox.run_tribunal(&["recover", "--rebuild", "--export", export_dir.to_str().unwrap()]);
    assert_eq!(exported.exit_code, Some(0), "{context}: {exported:?}");
    assert!(fs::read_dir(&export_dir).unwrap().next().is_some(), "{context}");
    for args in [&["recover"][..], &["status"], &["runs"], &["gc"]] {
        let output = sandbox.run_tribunal(args);
        assert_eq!(output.exit_code, Some(0), "{context}: {args:?}: {output:?}");
    }
    // A run that lost something is not resumed as if nothing had happened.
    for row in sandbox.run_json(&["recover"])["runs"].as_array().unwrap() {
        assert!(row["damage"].is_null(), "{context}: {row}");
    }
    CellOutcome::Told
}

/// The result of a run of each kind that nothing happened to, and the points at which it can be killed.
fn reference_run(kind: &KilledKind) -> (String, Vec<String>) {
    let sandbox = (kind.new_sandbox)();
    let output = (kind.start)(&sandbox, "");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    ((kind.describe_result)(&sandbox), (kind.list_fault_points)(&sandbox))
}

/// Returns the fault point of a place; an empty one if the run is not killed.
fn find_fault_point(fault_points: &[String], percent: usize) -> &str {
    fault_points.get(fault_points.len() * percent / 100).map_or("", String::as_str)
}

/// Tries cells in parallel, and returns the outcomes in the same order. One failure does not keep the others from being tried.
fn try_cells<T: Sync + RefUnwindSafe>(
    cells: &[T],
    try_one: impl Fn(&T) -> CellOutcome + Sync + RefUnwindSafe,
) -> Vec<Option<CellOutcome>> {
    let next_index = AtomicUsize::new(0);
    let outcomes: Mutex<BTreeMap<usize, Option<CellOutcome>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next_index.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(index) else { break };
                    let outcome = catch_unwind(|| try_one(cell)).ok();
                    outcomes.lock().unwrap().insert(index, outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap().into_values().collect()
}

/// Tries the matrix of kinds, places and damages, or every `step`th cell of it, and returns it as a table.
fn try_matrix(step: usize) -> String {
    let mut table = format!("{:8} {:14}", "run", "killed");
    for damage in &DAMAGES {
        let _ = write!(table, " {:10}", damage.name);
    }
    let mut is_complete = true;
    for (kind_index, kind) in KINDS.iter().enumerate() {
        let (reference, fault_points) = reference_run(kind);
        let cells: Vec<(usize, usize)> = (0..PLACES.len())
            .flat_map(|place_index| (0..DAMAGES.len()).map(move |damage_index| (place_index, damage_index)))
            .filter(|(place_index, damage_index)| {
                // Sampled cells lie on diagonals, so that every place and every damage is tried.
                (place_index * 3 + damage_index + kind_index) % step == 0
            })
            .collect();
        let outcomes = try_cells(&cells, |(place_index, damage_index)| {
            let fault_point = find_fault_point(&fault_points, PLACES[*place_index].1);
            try_cell(kind, fault_point, &DAMAGES[*damage_index], &reference)
        });
        for (place_index, (place_name, _)) in PLACES.iter().enumerate() {
            let _ = write!(table, "\n{:8} {place_name:14}", kind.name);
            for damage_index in 0..DAMAGES.len() {
                let outcome = cells.iter().zip(&outcomes).find(|(cell, _)| **cell == (place_index, damage_index));
                let word = match outcome {
                    Some((_, Some(CellOutcome::Same))) => "same",
                    Some((_, Some(CellOutcome::Told))) => "told",
                    Some((_, None)) => "LOST",
                    None => "",
                };
                is_complete &= word != "LOST";
                let _ = write!(table, " {word:10}");
            }
        }
    }
    assert!(is_complete, "something was lost in silence:\n{table}");
    table
}

#[test]
fn sampled_damages_of_killed_runs_are_told_or_harmless() {
    try_matrix(8);
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn every_damage_of_killed_runs_is_told_or_harmless() {
    println!("{}", try_matrix(1));
}

/// How many random combinations of each kind are tried.
const RANDOM_COUNT_VARIABLE: &str = "TRIBUNAL_CRASH_RANDOM";

#[test]
#[ignore = "runs on request: `cargo xtask crash --random N`"]
fn random_damages_at_random_kills_are_told_or_harmless() {
    let point_count: usize = env::var(RANDOM_COUNT_VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    for (kind_index, kind) in KINDS.iter().enumerate() {
        let (reference, fault_points) = reference_run(kind);
        let mut dice = Dice::new(41 + kind_index as u64);
        let cells: Vec<(usize, usize)> =
            (0..point_count).map(|_| (dice.roll(fault_points.len()), dice.roll(DAMAGES.len()))).collect();
        let outcomes = try_cells(&cells, |(point_index, damage_index)| {
            try_cell(kind, &fault_points[*point_index], &DAMAGES[*damage_index], &reference)
        });
        let count_of = |wanted: Option<CellOutcome>| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        println!(
            "{}: {} random kills and damages: {} reached the same result, {} were told and recovered",
            kind.name,
            cells.len(),
            count_of(Some(CellOutcome::Same)),
            count_of(Some(CellOutcome::Told)),
        );
        assert_eq!(count_of(None), 0, "{} combinations failed", kind.name);
    }
}
