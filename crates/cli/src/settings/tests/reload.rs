//! What `resume --reload` does with every setting, in every kind of run.

use std::path::Path;

use tribunal_engine::limits::RunLimits;
use tribunal_workflows::{
    findings::subject::Subject,
    runs::{kinds::RunOrder, plan::RunPlan, view::RunView},
    tasks::instructions::TaskOpening,
};

use super::{
    super::{
        inputs::RunInputs,
        layers::SETTINGS_FILE,
        reload::{ReloadedRun, reload_run},
        resolve::{resolve_loop_settings, resolve_settings, resolve_sprint_settings, resolve_story_settings},
        table::{self, RowTarget, SettingRow},
        typed::TypedSettings,
    },
    project_with_files,
    rows::different_value,
};

const AGENTS: &str = "agents:\n  use: [mine]\n  mine: {driver: claude-code}\n  other: {driver: codex}\n";

/// The plan of a new run of each kind.
fn start_runs(project_root: &Path, inputs: &RunInputs) -> Vec<RunPlan> {
    let review = resolve_settings(project_root, Subject::from_path("plan.md", None), inputs).unwrap().plan.into_run();
    let looping = resolve_loop_settings(project_root, inputs).unwrap();
    let mut loop_plan = looping.settings.plan;
    loop_plan.order.completion.checkbox_file = looping.choices.accepts_checkbox.then(|| String::from("PROMPT.md"));
    let story = resolve_story_settings(project_root, inputs).unwrap().plan.into_run();
    let mut sprint = resolve_sprint_settings(project_root, inputs).unwrap().plan;
    // What the project has for retrospectives.
    sprint.order.retrospective = sprint.order.retrospective.map(|_| TaskOpening::default());
    vec![review, loop_plan.into_run(), story, sprint.into_run()]
}

fn reload(project_root: &Path, plan: &RunPlan, inputs: &RunInputs) -> ReloadedRun {
    reload_run(project_root, &RunView::default(), plan.clone(), inputs.clone(), None).unwrap()
}

/// Rows that say where the files of a run are, which stay there, and those that are read whenever a run starts or goes on.
fn is_no_part_of_runs(setting_row: &SettingRow) -> bool {
    matches!(setting_row.path, "output_folder" | "reviews_folder" | "review_loop.enabled")
}

/// A value other than the default. Of the two thresholds one must not be above the other.
fn changed_value(setting_row: &SettingRow, defaults: &TypedSettings) -> String {
    match setting_row.path {
        "levels.minimal_above" => String::from("99"),
        "levels.dual_from" => String::from("5"),
        _ => different_value(setting_row, setting_row.default_value(defaults).as_ref()),
    }
}

#[test]
fn every_setting_of_a_run_is_either_live_or_pinned() {
    let directory = project_with_files(&[(SETTINGS_FILE, AGENTS)]);
    let typed_defaults = TypedSettings::default();
    let plain = RunInputs::default();
    let plans = start_runs(directory.path(), &plain);
    let (mut seen, mut wrong) = ((0, 0), Vec::new());
    for setting_row in table::all_rows().filter(|row| matches!(row.target, RowTarget::Field(_))) {
        if is_no_part_of_runs(setting_row) {
            continue;
        }
        let new_value = changed_value(setting_row, &typed_defaults);
        // Commands are read from the project's files, and hooks have no flags.
        if setting_row.path.starts_with("hooks.") {
            continue;
        }
        let changed = plain.clone().with_set_flags(&[format!("{}={new_value}", setting_row.path)]).unwrap();
        for (plan, new_plan) in plans.iter().zip(start_runs(directory.path(), &changed)) {
            let (kind_name, path) = (plan.order.kind_name(), setting_row.path);
            let reloaded = reload(directory.path(), plan, &changed);
            let is_pinned = setting_row.pinned_in.contains(&kind_name);
            if new_plan == *plan {
                if is_pinned {
                    wrong.push(format!("{path} is pinned in a {kind_name}, which does not have it"));
                }
                continue;
            }
            let says_so = reloaded.warnings.iter().any(|warning| warning.contains(&format!("`{path}`")));
            let is_kept = reloaded.plan == *plan;
            if (says_so, is_kept) != (is_pinned, is_pinned) {
                wrong.push(format!("{path} in a {kind_name}: pinned {is_pinned}, named {says_so}, kept {is_kept}"));
            }
            if is_pinned { seen.0 += 1 } else { seen.1 += 1 }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen.0 > 20 && seen.1 > 60, "{seen:?}");
}

#[test]
fn what_is_not_set_stays_as_it_is_in_the_run() {
    let directory = project_with_files(&[(SETTINGS_FILE, AGENTS)]);
    let typed_defaults = TypedSettings::default();
    let plain = RunInputs::default();
    let mut lost = Vec::new();
    for setting_row in table::all_rows().filter(|row| matches!(row.target, RowTarget::Field(_))) {
        // Other agents than those in the file have no definition.
        if is_no_part_of_runs(setting_row) || setting_row.path == "agents.use" || setting_row.path.starts_with("hooks.")
        {
            continue;
        }
        let new_value = changed_value(setting_row, &typed_defaults);
        let started = plain.clone().with_set_flags(&[format!("{}={new_value}", setting_row.path)]).unwrap();
        for plan in start_runs(directory.path(), &started) {
            let reloaded = reload(directory.path(), &plan, &plain);
            if reloaded.plan != plan || !reloaded.warnings.is_empty() {
                lost.push(format!("{} in a {}: {:?}", setting_row.path, plan.order.kind_name(), reloaded.warnings));
            }
        }
    }
    assert_eq!(lost, Vec::<String>::new());
}

#[test]
fn a_changed_pinned_setting_is_named_with_both_values() {
    let directory = project_with_files(&[(SETTINGS_FILE, AGENTS)]);
    let plan = start_runs(directory.path(), &RunInputs::default()).remove(1);
    assert!(matches!(plan.order, RunOrder::Loop(_)));
    let set = ["loop.promise=READY", "loop.continue=true", "loop.max_iterations=7"].map(String::from);
    let reloaded = reload(directory.path(), &plan, &RunInputs::default().with_set_flags(&set).unwrap());
    let kept = "`loop.promise` is COMPLETE and not READY, `loop.continue` is false and not true";
    assert_eq!(reloaded.warnings, [format!("what is fixed when a run starts stays as it was: {kept}")]);
    let RunOrder::Loop(order) = reloaded.plan.order else { panic!("{:?}", reloaded.plan.order) };
    assert_eq!((order.pacing.max_iterations, order.completion.promise.as_str()), (7, "COMPLETE"));
    assert_eq!(reloaded.plan.settings.limits.cost, RunLimits::for_development().cost);
}

#[test]
fn checks_that_are_dropped_are_named() {
    let directory = project_with_files(&[(SETTINGS_FILE, AGENTS)]);
    let set = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        RunInputs::default().with_set_flags(&texts).unwrap()
    };
    let plan = start_runs(directory.path(), &set(&["verify=[make test]", "checks=[make lint]"])).remove(0);
    let reloaded = reload(directory.path(), &plan, &set(&["verify=[make test]"]));
    assert_eq!(reloaded.warnings, ["not checked any more, since `checks` or `verify` is set without it: `make lint`"]);
    assert_eq!(reload(directory.path(), &plan, &RunInputs::default()).warnings, Vec::<String>::new());
}

#[test]
fn agents_stay_unless_others_are_named() {
    let definitions = "agents:\n  mine: {driver: claude-code}\n  other: {driver: codex}\n";
    let directory = project_with_files(&[(SETTINGS_FILE, definitions)]);
    let named = RunInputs::default().with_flag("--agent", "agents.use", Some(String::from("other")));
    let plan = start_runs(directory.path(), &named).remove(0);
    let names =
        |plan: &RunPlan| -> Vec<String> { plan.settings.agents.iter().map(|agent| agent.name.to_string()).collect() };
    assert_eq!(names(&plan), ["other"]);
    assert_eq!(names(&reload(directory.path(), &plan, &RunInputs::default()).plan), ["other"]);
    let renamed = RunInputs::default().with_flag("--agent", "agents.use", Some(String::from("mine")));
    assert_eq!(names(&reload(directory.path(), &plan, &renamed).plan), ["mine"]);
    // An agent that is not defined any more cannot stay.
    std::fs::write(directory.path().join(SETTINGS_FILE), "agents:\n  mine: {driver: claude-code}\n").unwrap();
    assert_eq!(names(&reload(directory.path(), &plan, &RunInputs::default()).plan), ["mine"]);
}
