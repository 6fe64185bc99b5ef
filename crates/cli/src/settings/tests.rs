//! Tests of the whole table: every setting in every spelling, every range, and the blocks that users paste.

mod agent_selection;
mod reload;
mod rows;

use std::fs;

use tribunal_engine::limits::RunLimits;
use tribunal_report::{DisplayMode, Screen};
use tribunal_workflows::{
    development::checks::{CheckSpec, CheckTime, CommandLine, FailureAction},
    findings::subject::Subject,
    review::{
        level::{ReviewGoal, ReviewLevel},
        order::{PanelSettings, ReviewOrder},
    },
    runs::{
        plan::RunPlan,
        settings::{AgentSpec, TaskSettings},
    },
};

use super::{
    file_reader::{ReadMode, read_settings},
    inputs::RunInputs,
    kind::ValueKind,
    layers::{EffectiveSettings, SETTINGS_FILE, SettingSources, gather_settings},
    origin::SettingLayer,
    resolve::resolve_settings,
    show::draw_settings,
    table,
};
use crate::trust::trust_item::TrustItem;

/// A project with these files.
fn project_with_files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (file_name, file_text) in files {
        let file_path = directory.path().join(file_name);
        fs::create_dir_all(file_path.parent().unwrap()).unwrap();
        fs::write(file_path, file_text).unwrap();
    }
    directory
}

fn effective_settings(files: &[(&str, &str)]) -> EffectiveSettings {
    gather_settings(project_with_files(files).path(), &SettingSources::default())
        .unwrap_or_else(|user_error| panic!("{user_error}"))
}

fn resolved_plan(files: &[(&str, &str)]) -> RunPlan<ReviewOrder> {
    let directory = project_with_files(files);
    let resolution = resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default());
    resolution.unwrap_or_else(|user_error| panic!("{user_error}")).plan
}

const AGENT_YAML: &str = "agents: {mine: {driver: command, argv: [x]}}\n";

/// The path with a name, and with the first word of every list.
fn fill_path(setting_path: &str) -> String {
    let named_path = setting_path.replace("NAME", "mine");
    table::WORD_LISTS
        .iter()
        .fold(named_path, |filled_path, (list_name, words)| filled_path.replace(list_name, words[0]))
}

/// The path `a.b.c` as nested keys, with the value in the last line.
fn nest_yaml(setting_path: &str, value_text: &str) -> String {
    let setting_path = fill_path(setting_path);
    let path_parts: Vec<&str> = setting_path.split('.').collect();
    let mut yaml_text = String::from("# pasted\n");
    for (depth, path_part) in path_parts.iter().enumerate() {
        let value_part =
            if depth + 1 == path_parts.len() { format!(" {value_text}   # so be it") } else { String::new() };
        yaml_text.push_str(&format!("{}{path_part}:{value_part}\n", "  ".repeat(depth)));
    }
    yaml_text
}

/// A valid value; it means the same for all kinds that one setting may have.
fn valid_value(value_kind: ValueKind) -> String {
    match value_kind {
        ValueKind::Whole { minimum, .. } => minimum.max(1).to_string(),
        ValueKind::TierOrSuggested => "1".into(),
        ValueKind::Seconds { .. } => "1800".into(),
        ValueKind::Minutes => "30".into(),
        ValueKind::Percent => "50".into(),
        ValueKind::Fraction => "0.5".into(),
        ValueKind::Cost => "2.50".into(),
        ValueKind::Words(allowed_words) => allowed_words[0].into(),
        ValueKind::ListOf(allowed_words) => format!("[{}]", allowed_words[0]),
        ValueKind::Flag => "false".into(),
        ValueKind::List | ValueKind::Argv | ValueKind::Commands | ValueKind::Checks => "[mine]".into(),
        ValueKind::Command => "mine".into(),
        ValueKind::Network { .. } => "[443]".into(),
        ValueKind::Text | ValueKind::TextOrFalse | ValueKind::SingleName | ValueKind::Folder => "\"mine\"".into(),
    }
}

fn invalid_values(value_kind: ValueKind) -> Vec<String> {
    let (minimum, maximum) = (*value_kind.allowed_range().start(), *value_kind.allowed_range().end());
    match value_kind {
        ValueKind::Whole { .. }
        | ValueKind::Seconds { .. }
        | ValueKind::Minutes
        | ValueKind::Percent
        | ValueKind::TierOrSuggested => {
            let below_minimum = minimum.checked_sub(1).map_or("-1".to_string(), |number| number.to_string());
            [below_minimum, (maximum + 1).to_string(), "1.5".into(), "many".into(), "infinite".into(), "".into()]
                .to_vec()
        }
        ValueKind::Fraction => ["1.01", "-0.1", "80", ".inf"].map(String::from).to_vec(),
        ValueKind::Cost => ["0", "-1", ".nan", "unlimited"].map(String::from).to_vec(),
        ValueKind::Words(_) | ValueKind::Flag => ["surely-not", "[a]", "{a: b}"].map(String::from).to_vec(),
        ValueKind::List | ValueKind::Argv | ValueKind::Commands => {
            ["yes", "mine", "[{a: b}]"].map(String::from).to_vec()
        }
        ValueKind::Checks => ["yes", "mine", "[{command: []}]", "[{run: a, when: b}]"].map(String::from).to_vec(),
        ValueKind::Command => ["[]", "{a: b}", "\"\""].map(String::from).to_vec(),
        ValueKind::ListOf(_) => ["yes", "[surely-not]"].map(String::from).to_vec(),
        ValueKind::Network { .. } => ["443", "yes", "[70000]", "[443, all]", "{a: b}"].map(String::from).to_vec(),
        ValueKind::Text | ValueKind::TextOrFalse | ValueKind::SingleName | ValueKind::Folder => {
            ["[a]", "\"\""].map(String::from).to_vec()
        }
    }
}

#[test]
fn every_spelling_of_every_setting_means_the_same_and_knows_its_line() {
    for spelling in table::every_spelling() {
        let setting_row = spelling.setting_row;
        let canonical_path = fill_path(setting_row.path);
        let expected = read_settings(
            SETTINGS_FILE,
            &nest_yaml(setting_row.path, &valid_value(setting_row.kind)),
            ReadMode::Strict,
        )
        .settings
        .remove(0)
        .setting_value;
        let mut spelling_paths = vec![spelling.path.to_string()];
        if spelling.path.starts_with("review_loop.") {
            spelling_paths.push(format!("automation.{}", spelling.path));
        }
        for spelling_path in spelling_paths {
            let yaml_text = nest_yaml(&spelling_path, &valid_value(spelling.kind));
            let effective_values = effective_settings(&[(SETTINGS_FILE, &yaml_text)]);
            let sourced_value =
                effective_values.values.get(&canonical_path).unwrap_or_else(|| panic!("{spelling_path}: {yaml_text}"));
            assert_eq!(sourced_value.value, expected, "{spelling_path}");
            assert_eq!(sourced_value.origin.line_number, Some(yaml_text.lines().count()), "{spelling_path}");
            assert_eq!(sourced_value.origin.layer, SettingLayer::Project);
        }
    }
}

#[test]
fn every_setting_out_of_range_is_refused_with_its_line() {
    for spelling in table::every_spelling() {
        for invalid_value in invalid_values(spelling.kind) {
            let yaml_text = nest_yaml(spelling.path, &invalid_value);
            let file_reading = read_settings(SETTINGS_FILE, &yaml_text, ReadMode::Strict);
            assert_eq!(
                file_reading.problems.len(),
                1,
                "{}: {invalid_value} was taken: {file_reading:?}",
                spelling.path
            );
            assert_eq!(file_reading.problems[0].line_number, Some(yaml_text.lines().count()), "{yaml_text}");
            assert!(file_reading.problems[0].message.contains("must"), "{yaml_text}");
        }
    }
}

#[test]
fn without_settings_a_run_has_the_defaults_of_core() {
    let RunPlan { settings, order } = resolved_plan(&[(SETTINGS_FILE, AGENT_YAML)]);
    assert_eq!(order, ReviewOrder::new(Subject::from_path("plan.md", None)));
    let RunLimits { share, .. } = &settings.limits;
    assert_eq!((&settings.limits, share), (&RunLimits::default(), &None));
    assert_eq!(settings.tasks, TaskSettings::default());
    assert_eq!((settings.tier.number(), order.level, order.goal), (2, None, ReviewGoal::ZeroOpen));
    assert!(order.fix && settings.checks.is_empty() && settings.seeds.is_empty());
    assert_eq!(settings.reviews, ".tribunal/reviews");
}

/// The block as its documentation shows it: indented, because it belongs under a key.
const REVIEW_LOOP_YAML: &str = r#"
  # The loop
  review_loop:
    enabled: true

    # Levels by confidence
    confidence_thresholds:
      minimal: 98    # >98% = adversarial only
      dual: 95       # in between
      full: 0

    tier_minimums:
      0: minimal     # quick
      1: dual
      2: full
      3: full
      4: full

    subagents:
      adversarial:
        model: sonnet
        timeout: 120
        required_issues: 4
      party:
        model: sonnet
        timeout: 180
        min_agents: 5
        max_rounds: 1
      elicitation:
        model: sonnet
        timeout: 130
        min_methods: 4
      fixer:
        model: sonnet
        timeout: 140
        max_issues_per_agent: 6

    limits:
      max_review_rounds: 2
      max_fix_iterations: 1
      max_concurrent_fixers: 4

    issue_tracker:
      output_dir: "{output_folder}/found"
      filename_pattern: "{section_name}-issues.md"
      save_fix_patterns: true
"#;

fn assert_pasted_settings(plan: &RunPlan<ReviewOrder>, output_folder: &str) {
    let ReviewOrder { limits, panel, fixers, .. } = &plan.order;
    assert_eq!((limits.rounds, limits.fix_iterations), (2, 1));
    assert_eq!((panel.reviewer_timeout_ms, panel.party_timeout_ms), (120_000, 180_000));
    assert_eq!((panel.elicitation_timeout_ms, fixers.timeout_ms), (Some(130_000), 140_000));
    assert_eq!((panel.required_issues, fixers.max_issues_per_agent, fixers.max_concurrent), (4, 6, 4));
    let plans = &panel.plans;
    assert_eq!((plans.min_agents, plans.max_rounds, plans.min_methods), (5, 1, 4));
    assert_eq!(plan.settings.reviews, format!("{output_folder}/found"));
}

#[test]
fn the_review_loop_block_is_read_alone_and_under_automation_and_in_the_bmad_file() {
    let files_alone = [("_bmad/bmm/config.yaml", "output_folder: out\n"), (SETTINGS_FILE, REVIEW_LOOP_YAML)];
    let file_reading = read_settings(SETTINGS_FILE, REVIEW_LOOP_YAML, ReadMode::Strict);
    assert_eq!(file_reading.problems, []);
    let expected_line =
        REVIEW_LOOP_YAML.lines().position(|yaml_line| yaml_line.contains("max_review_rounds")).map(|index| index + 1);
    assert_eq!(
        effective_settings(&files_alone).origin_of("limits.max_review_rounds").unwrap().line_number,
        expected_line
    );

    let nested_yaml = format!("{AGENT_YAML}automation:\n  enabled: true\n  progress: {{}}\n{REVIEW_LOOP_YAML}");
    let strict_reading = read_settings(SETTINGS_FILE, &nested_yaml, ReadMode::Strict);
    assert_eq!(strict_reading.problems.len(), 1, "only the unknown key: {:?}", strict_reading.problems);
    let nested_yaml = nested_yaml.replace("  progress: {}\n", "");
    assert_pasted_settings(&resolved_plan(&[(SETTINGS_FILE, &nested_yaml)]), ".tribunal");

    let bmad_yaml =
        format!("output_folder: \"{{project-root}}/_out\"\nautomation:\n  progress: {{}}\n{REVIEW_LOOP_YAML}");
    assert_pasted_settings(
        &resolved_plan(&[("_bmad/bmm/config.yaml", &bmad_yaml), (SETTINGS_FILE, AGENT_YAML)]),
        "_out",
    );
}

#[test]
fn the_automation_blocks_are_read() {
    let yaml_text = format!(
        "{AGENT_YAML}{}",
        r"
# a start
automation:
  enabled: true
  tier: auto-suggest  # suggested, then confirmed

defaults:
  default_tier: 3                    # balanced
  auto_continue_threshold: 0.80      # of 1
  checkpoint_at_decisions: true
  max_fix_attempts: 5
  batch_continue_size: 3
  require_final_approval: true

preflight_validation:
  enabled: true
  checks:
    - config_syntax        # no typos
    - tier_valid
    - thresholds_sane
    - dependencies_met
    - memory_accessible

menu_rate_limiting:
  # time between menus
  min_interval_seconds: 2

  max_consecutive_menus: 10
  batch_silent_progress: true
  use_progress_indicator: true

progress_display:
  mode: quiet                # streaming | summary | quiet
  update_interval_seconds: 5 # how often
  show_estimates: true
  sound_alerts: false

  long_operation_seconds: 30 # when it is long
  stall_detection_seconds: 60
"
    );
    assert_eq!(
        resolved_plan(&[(SETTINGS_FILE, &yaml_text)]).settings.tier.number(),
        3,
        "the default tier, where it is left to us"
    );
    assert_eq!(effective_settings(&[(SETTINGS_FILE, &yaml_text)]).to_typed().progress, DisplayMode::Silent);
    let chosen_tier_yaml = yaml_text.replace("auto-suggest", "1");
    assert_eq!(
        resolved_plan(&[(SETTINGS_FILE, &chosen_tier_yaml)]).settings.tier.number(),
        1,
        "the tier wins over the default tier"
    );
    let small_yaml = format!("{AGENT_YAML}automation:\n  enabled: true\n  tier: 4\n  require_final_approval: true\n");
    assert_eq!(resolved_plan(&[(SETTINGS_FILE, &small_yaml)]).settings.tier.number(), 4);
}

#[test]
fn a_redefined_agent_is_not_mixed_with_the_earlier_one() {
    let user_directory =
        project_with_files(&[("user.yaml", "agents: {mine: {driver: replay, script: s.yaml}}\nlevel: dual\n")]);
    let project_directory = project_with_files(&[(SETTINGS_FILE, AGENT_YAML)]);
    let sources =
        SettingSources { user_file: Some(user_directory.path().join("user.yaml")), ..SettingSources::default() };
    let inputs = RunInputs { sources, ..RunInputs::default() };
    let resolution = resolve_settings(project_directory.path(), Subject::from_path("plan.md", None), &inputs).unwrap();
    assert_eq!(resolution.plan.order.level, Some(ReviewLevel::Dual));
    assert_eq!(resolution.items.len(), 1, "the project's command is the one that would run");
}

#[test]
fn seeds_and_approval_can_be_set() {
    let settings_yaml = format!("{AGENT_YAML}approve: each\ncopies: {{seed: [.env, ./vendor/, .env]}}\n");
    let plan = resolved_plan(&[(SETTINGS_FILE, &settings_yaml)]);
    assert!(plan.order.fixers.approve_each && !plan.order.fixers.in_session);
    assert_eq!(plan.settings.seeds, [".env", "vendor"]);
    let refusal_of = |seed_path: &str| {
        let directory =
            project_with_files(&[(SETTINGS_FILE, &format!("{AGENT_YAML}copies:\n  seed: [{seed_path}]\n"))]);
        let user_error =
            resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default()).unwrap_err();
        user_error.to_string().replace(&directory.path().display().to_string(), "[project]")
    };
    insta::assert_snapshot!(refusal_of("../secrets"), @"
    error: [project]/tribunal.yaml:3: `workspace.seed` is `../secrets`, which is outside the project
      Nothing was started.
      help: use a path inside the project, here or as `workspace.seed` in tribunal.yaml
    ");
    insta::assert_snapshot!(refusal_of(".git/config"), @"
    error: [project]/tribunal.yaml:3: `workspace.seed` contains `.git/config`, which is never copied to a workspace
      It holds the project's history. Nothing was started.
      help: remove it from the list
    ");
}

/// Three agents, each stronger than the one before it.
const LADDER_YAML: &str = "agents:
  use: [fast]
  fast: {driver: command, argv: [f], provider: ' Acme ', stronger: big}
  big: {driver: command, argv: [b], provider: acme, stronger: huge}
  huge: {driver: command, argv: [h]}
  idle: {driver: command, argv: [i], stronger: big}
";

#[test]
fn a_stronger_agent_that_is_not_used_is_in_reserve_with_its_own_reserve() {
    let spec_names = |agent_specs: &[AgentSpec]| -> Vec<String> {
        agent_specs.iter().map(|agent_spec| format!("{} of {}", agent_spec.name, agent_spec.provider_name())).collect()
    };
    let run_settings = resolved_plan(&[(SETTINGS_FILE, LADDER_YAML)]).settings;
    assert_eq!(spec_names(&run_settings.agents), ["fast of acme"]);
    assert_eq!(spec_names(&run_settings.reserves), ["big of acme", "huge of huge"]);
    let stronger_name = |agent_spec: &AgentSpec| agent_spec.stronger.as_ref().map(ToString::to_string);
    assert_eq!(stronger_name(&run_settings.agents[0]).as_deref(), Some("big"));
    assert_eq!(stronger_name(&run_settings.reserves[0]).as_deref(), Some("huge"));

    let several_yaml = LADDER_YAML.replace("use: [fast]", "use: [idle, fast, huge]");
    let run_settings = resolved_plan(&[(SETTINGS_FILE, &several_yaml)]).settings;
    assert_eq!(spec_names(&run_settings.agents), ["idle of idle", "fast of acme", "huge of huge"]);
    assert_eq!(spec_names(&run_settings.reserves), ["big of acme"], "once, and not those who take part anyway");
}

#[test]
fn a_command_in_reserve_needs_trust_like_any_other() {
    let directory = project_with_files(&[(SETTINGS_FILE, LADDER_YAML)]);
    let resolution =
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default()).unwrap();
    let commands: Vec<String> = resolution.items.iter().map(TrustItem::command_text).collect();
    assert_eq!(commands, ["f", "b", "h"]);
}

#[test]
fn a_reserve_follows_the_same_rules_as_an_agent_in_use() {
    let broken_yaml = LADDER_YAML.replace("huge: {driver: command, argv: [h]}", "huge: {provider: acme}");
    let directory = project_with_files(&[(SETTINGS_FILE, &broken_yaml)]);
    let user_error =
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default()).unwrap_err();
    assert!(user_error.message.contains("agent `huge`: missing `driver`"), "{user_error}");
    assert!(user_error.to_string().contains("tribunal.yaml:5"), "{user_error}");
}

#[test]
fn unknown_names_are_reported_all_at_once_with_their_lines() {
    let yaml_text = "agents:
  use: [a, absent]
  a: {driver: command, argv: [x], stronger: a}
  big: {driver: command, argv: [x], stronger: biger}
  bigger: {driver: command, argv: [x], stronger: zzz}
  one: {driver: command, argv: [x], stronger: two}
  two: {driver: command, argv: [x], stronger: three}
  three: {driver: command, argv: [x], stronger: one}
  into: {driver: command, argv: [x], stronger: one}
";
    let directory = project_with_files(&[(SETTINGS_FILE, yaml_text)]);
    let user_error =
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default()).unwrap_err();
    let error_text = user_error.to_string().replace(&directory.path().display().to_string(), "[project]");
    insta::assert_snapshot!(error_text, @"
    error: [project]/tribunal.yaml, line 2: unknown agent `absent`
      Nothing was started.
      Other problems:
        line 3: `agents.a.stronger` names the agent itself
          name another agent, or remove the line
        line 4: `agents.big.stronger` names an unknown agent, `biger`
          did you mean `bigger`?
        line 5: `agents.bigger.stronger` names an unknown agent, `zzz`
          define it under `agents:`, or use one of a, big, into, one, three, two
        line 6: `agents.one.stronger` leads back to the agent itself: `one` -> `two` -> `three` -> `one`
          remove `stronger` from the strongest of them
      help: define it under `agents:`, or use one of a, big, bigger, into, one, three, two
    ");
}

#[test]
fn an_undefined_agent_is_reported_where_it_is_requested() {
    let error_text = |yaml_text: &str, agent_flag: Option<&str>| {
        let directory = project_with_files(&[(SETTINGS_FILE, yaml_text)]);
        let inputs = RunInputs::default().with_flag("--agent", "agents.use", agent_flag.map(String::from));
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &inputs).unwrap_err().to_string()
    };
    insta::assert_snapshot!(error_text(AGENT_YAML, Some("mein")), @"
    error: --agent: unknown agent `mein`
      Nothing was started.
      help: did you mean `mine`?
    ");
    insta::assert_snapshot!(error_text("tier: 1\n", Some("cluade-code")), @"
    error: --agent: unknown agent `cluade-code`
      Nothing was started.
      help: did you mean `claude-code`?
    ");
    insta::assert_snapshot!(error_text("tier: 1\n", Some("mine")), @"
    error: --agent: unknown agent `mine`
      Nothing was started.
      help: use claude-code or codex, or define it in tribunal.yaml: `agents: {mine: {driver: command, argv: […]}}`
    ");
}

#[test]
fn the_project_roster_is_pinned_and_a_bad_one_is_only_a_warning() {
    let manifest = "_bmad/_config/agent-manifest.csv";
    let resolve_with = |roster_text: &str| {
        let directory = project_with_files(&[(SETTINGS_FILE, AGENT_YAML), (manifest, roster_text)]);
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default()).unwrap()
    };
    let good_result = resolve_with("name,title,role\na,Clerk,bills\nb,Cook,food\nc,Pilot,charts\n");
    let pinned_roster = &good_result.plan.order.panel.plans.roster;
    assert_eq!(
        pinned_roster.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        "Clerk (bills), Cook (food), Pilot (charts)"
    );
    assert_eq!(good_result.warnings, [""; 0]);
    let bad_result = resolve_with("this is no manifest");
    assert_eq!(bad_result.plan.order.panel, PanelSettings::default());
    assert_eq!(bad_result.warnings.len(), 1, "{:?}", bad_result.warnings);
}

#[test]
fn the_target_confidence_is_pinned_only_if_it_is_set() {
    assert_eq!(resolved_plan(&[(SETTINGS_FILE, AGENT_YAML)]).order.target_confidence, None);
    assert_eq!(
        resolved_plan(&[(SETTINGS_FILE, &format!("{AGENT_YAML}target_confidence: 80\n"))]).order.target_confidence,
        Some(80)
    );
}

#[test]
fn on_a_narrow_screen_values_are_cut_and_origins_are_not() {
    let user_path = "a-home/with-a-long-name/config/tribunal/settings.yaml";
    let directory = project_with_files(&[
        (user_path, "limits: {max_cost: 2}\n"),
        (SETTINGS_FILE, "tier: 1\nverify: [make a very long check]\n"),
    ]);
    let sources = SettingSources { user_file: Some(directory.path().join(user_path)), ..SettingSources::default() };
    let effective_values = gather_settings(directory.path(), &sources).unwrap();
    let screen = Screen { max_columns: Some(60), ..Screen::default() };
    let drawn_text = draw_settings(&effective_values, &directory.path().display().to_string(), false, &screen);
    let lines_from = |setting_name: &str| {
        let lines = drawn_text.lines().skip_while(|line| !line.contains(setting_name)).take(3);
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(lines_from("verify"), @"
    * verify                   [make a very…  tribunal.yaml:2
        a list of commands such as [make test, [cargo, test]]
      checks                   []             default
    ");
    insta::assert_snapshot!(lines_from("max_cost"), @"
    * max_cost                 2.00
        a-home/with-a-long-name/config/tribunal/settings.yaml:1
        an amount in dollars, more than 0
    ");
    assert!(drawn_text.lines().all(|line| line.chars().count() < 60), "{drawn_text}");
}

#[test]
fn folders_stay_inside_the_project() {
    for (written_folder, expected_folder) in [
        ("\"{project-root}/_bmad-output\"", Some("_bmad-output/reviews")),
        ("./docs/out/", Some("docs/out/reviews")),
        ("/srv/out", None),
        ("../out", None),
        ("\"{project-root}\"", None),
        ("\"{elsewhere}/x\"", None),
    ] {
        let directory =
            project_with_files(&[(SETTINGS_FILE, &format!("{AGENT_YAML}output_folder: {written_folder}\n"))]);
        let resolution = resolve_settings(directory.path(), Subject::from_path("plan.md", None), &RunInputs::default());
        match (resolution, expected_folder) {
            (Ok(resolution), Some(expected_folder)) => {
                assert_eq!(resolution.plan.settings.reviews, expected_folder)
            }
            (Err(user_error), None) => {
                assert!(user_error.message.contains("tribunal.yaml:2: `output_folder`"), "{user_error}")
            }
            (unexpected, _) => panic!("{written_folder}: {unexpected:?}"),
        }
    }
    let bmad_yaml = "project_name: x\n";
    assert_eq!(
        resolved_plan(&[("_bmad/bmm/config.yaml", bmad_yaml), (SETTINGS_FILE, AGENT_YAML)]).settings.reviews,
        "_bmad-output/reviews"
    );
    // BMAD's value matters only if no stronger layer sets one.
    let corrected_yaml = format!("{AGENT_YAML}output_folder: out\n");
    let directory = [("_bmad/bmm/config.yaml", "output_folder: /srv/out\n"), (SETTINGS_FILE, corrected_yaml.as_str())];
    assert_eq!(resolved_plan(&directory).settings.reviews, "out/reviews");
}

#[test]
fn a_check_is_a_text_for_the_shell_or_a_list_of_words() {
    let yaml_text =
        format!("{AGENT_YAML}verify:\n  - make test && make lint\n  - [cargo, test, --, \"it's a name\", '']\n");
    let words = ["cargo", "test", "--", "it's a name", ""].map(String::from).to_vec();
    assert_eq!(
        resolved_plan(&[(SETTINGS_FILE, &yaml_text)]).settings.checks,
        [CommandLine::from_shell_line("make test && make lint"), CommandLine::Argv(words)].map(CheckSpec::new)
    );
}

#[test]
fn the_short_form_of_checks_comes_first() {
    let yaml_text = format!(
        "{AGENT_YAML}checks: [a, {{run: b, when: completion, on_failure: fix, timeout: 2}}]\nverify: [make test]\n"
    );
    let plain_check = |line: &str| CheckSpec::new(CommandLine::from_shell_line(line));
    let last_check = CheckSpec {
        when: CheckTime::Completion,
        on_failure: FailureAction::Fix,
        timeout_ms: Some(2000),
        ..plain_check("b")
    };
    let plan = resolved_plan(&[(SETTINGS_FILE, &yaml_text)]);
    assert_eq!(plan.settings.checks, [plain_check("make test"), plain_check("a"), last_check]);
}

#[test]
fn the_directory_for_clones_is_absolute_and_may_begin_with_the_home_directory() {
    let resolve_root = |written_root: &str| {
        let yaml_text = format!("{AGENT_YAML}workspace: {{root: {written_root:?}, setup: [npm ci]}}\n");
        let directory = project_with_files(&[(SETTINGS_FILE, &yaml_text)]);
        let sources = SettingSources { home_dir: Some("/users/me".into()), ..SettingSources::default() };
        let inputs = RunInputs { sources, ..RunInputs::default() };
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &inputs)
            .map(|resolved| resolved.plan.settings.workspace)
            .map_err(|user_error| user_error.message)
    };
    let workspace = resolve_root("~/clones/").unwrap();
    assert_eq!(workspace.root.as_deref(), Some("/users/me/clones"));
    assert_eq!(workspace.setup, [CommandLine::from_shell_line("npm ci")]);
    assert_eq!(resolve_root("/srv/clones").unwrap().root.as_deref(), Some("/srv/clones"));
    for refused_root in ["clones", "../clones", "~other/clones"] {
        let message = resolve_root(refused_root).unwrap_err();
        assert!(message.contains("which is not an absolute path"), "{message}");
    }
}

#[test]
fn runs_are_resumed_with_the_fewest_calls_per_hour_that_they_are_pinned_to() {
    let plan_with = |calls: u32| {
        let setting = format!("{AGENT_YAML}limits: {{calls_per_hour: {calls}}}\n");
        resolved_plan(&[(SETTINGS_FILE, &setting)]).into_run()
    };
    let calls_of = |plans: &[RunPlan]| super::typed::ThroughputLimits::default().with_limits_of(plans).calls.get();
    assert_eq!(calls_of(&[]), 1_000);
    assert_eq!(calls_of(&[plan_with(50), plan_with(7), plan_with(2_000)]), 7);
}

#[test]
fn a_flag_for_a_setting_that_does_not_exist_says_where_they_are_listed() {
    let directory = project_with_files(&[(SETTINGS_FILE, AGENT_YAML)]);
    let refusal = |text: &str| {
        let inputs = RunInputs::default().with_set_flags(&[text.to_string()]).unwrap();
        resolve_settings(directory.path(), Subject::from_path("plan.md", None), &inputs).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refusal("foo.bar=1"), @"
    error: --set foo.bar: unknown setting `foo.bar`
      Nothing was started.
      help: list all settings: `tribunal inspect settings`
    ");
    assert!(refusal("limits.max_cst=1").contains("did you mean `limits.max_cost`?"));
}
