//! Tests of the whole table: every setting in every spelling, every range, and the blocks that users paste.

mod rows;
mod who;

use std::fs;

use tribunal_core::{
    level::{Goal, Level},
    limits::Limits,
    settings::{AgentSpec, Settings, TaskSettings, WritingSettings},
    subject::Subject,
};
use tribunal_report::{Mode, Screen};

use super::{
    kind::Kind,
    layers::{Effective, FILE, Given, gather},
    origin::Layer,
    read::{Manner, read},
    resolve::resolve,
    show::draw,
    table,
    wishes::Wishes,
};
use crate::trust_item::Item;

/// A project with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn effective(files: &[(&str, &str)]) -> Effective {
    gather(project(files).path(), &Given::default()).unwrap_or_else(|complaint| panic!("{complaint}"))
}

fn settings(files: &[(&str, &str)]) -> Settings {
    let folder = project(files);
    let resolved = resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default());
    resolved.unwrap_or_else(|complaint| panic!("{complaint}")).settings
}

const AGENT: &str = "agents: {mine: {driver: command, argv: [x]}}\n";

/// The path with a name, and with the first word of every list.
fn filled(path: &str) -> String {
    let named = path.replace("NAME", "mine");
    table::LISTS.iter().fold(named, |path, (list, words)| path.replace(list, words[0]))
}

/// The path `a.b.c` as nested keys, with the value in the last line.
fn nested(path: &str, value: &str) -> String {
    let path = filled(path);
    let parts: Vec<&str> = path.split('.').collect();
    let mut text = String::from("# pasted\n");
    for (depth, part) in parts.iter().enumerate() {
        let value = if depth + 1 == parts.len() { format!(" {value}   # so be it") } else { String::new() };
        text.push_str(&format!("{}{part}:{value}\n", "  ".repeat(depth)));
    }
    text
}

/// A valid value; it means the same for all kinds that one setting may have.
fn good(kind: Kind) -> String {
    match kind {
        Kind::Whole { min, .. } => min.max(1).to_string(),
        Kind::TierOrSuggested => "1".into(),
        Kind::Seconds { .. } => "1800".into(),
        Kind::Minutes => "30".into(),
        Kind::Percent => "50".into(),
        Kind::Fraction => "0.5".into(),
        Kind::Cost => "2.50".into(),
        Kind::Words(words) => words[0].into(),
        Kind::ListOf(words) => format!("[{}]", words[0]),
        Kind::Flag => "false".into(),
        Kind::List | Kind::Commands => "[mine]".into(),
        Kind::Text | Kind::TextOrNo | Kind::One | Kind::Folder => "\"mine\"".into(),
    }
}

fn bad(kind: Kind) -> Vec<String> {
    let (min, max) = (*kind.range().start(), *kind.range().end());
    match kind {
        Kind::Whole { .. } | Kind::Seconds { .. } | Kind::Minutes | Kind::Percent | Kind::TierOrSuggested => {
            let below = min.checked_sub(1).map_or("-1".to_string(), |below| below.to_string());
            [below, (max + 1).to_string(), "1.5".into(), "many".into(), "infinite".into(), "".into()].to_vec()
        }
        Kind::Fraction => ["1.01", "-0.1", "80", ".inf"].map(String::from).to_vec(),
        Kind::Cost => ["0", "-1", ".nan", "unlimited"].map(String::from).to_vec(),
        Kind::Words(_) | Kind::Flag => ["surely-not", "[a]", "{a: b}"].map(String::from).to_vec(),
        Kind::List | Kind::Commands => ["yes", "mine", "[{a: b}]"].map(String::from).to_vec(),
        Kind::ListOf(_) => ["yes", "[surely-not]"].map(String::from).to_vec(),
        Kind::Text | Kind::TextOrNo | Kind::One | Kind::Folder => ["[a]", "\"\""].map(String::from).to_vec(),
    }
}

#[test]
fn every_spelling_of_every_setting_means_the_same_and_knows_its_line() {
    for spelling in table::spellings() {
        let row = spelling.row;
        let path = filled(row.path);
        let expected = read(FILE, &nested(row.path, &good(row.kind)), Manner::Strict).found.remove(0).value;
        let mut ways = vec![spelling.path.to_string()];
        if spelling.path.starts_with("review_loop.") {
            ways.push(format!("automation.{}", spelling.path));
        }
        for way in ways {
            let text = nested(&way, &good(spelling.kind));
            let found = effective(&[(FILE, &text)]);
            let setting = found.values.get(&path).unwrap_or_else(|| panic!("{way}: {text}"));
            assert_eq!(setting.value, expected, "{way}");
            assert_eq!(setting.origin.line, Some(text.lines().count()), "{way}");
            assert_eq!(setting.origin.layer, Layer::Project);
        }
    }
}

#[test]
fn every_setting_out_of_range_is_refused_with_its_line() {
    for spelling in table::spellings() {
        for value in bad(spelling.kind) {
            let text = nested(spelling.path, &value);
            let reading = read(FILE, &text, Manner::Strict);
            assert_eq!(reading.problems.len(), 1, "{}: {value} was taken: {reading:?}", spelling.path);
            assert_eq!(reading.problems[0].line, Some(text.lines().count()), "{text}");
            assert!(reading.problems[0].what.contains("allowed is"), "{text}");
        }
    }
}

#[test]
fn where_nothing_is_set_a_run_has_the_defaults_of_core() {
    let settings = settings(&[(FILE, AGENT)]);
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.tasks, TaskSettings::default());
    assert_eq!((settings.tier.number(), settings.level, settings.goal), (2, None, Goal::ZeroOpen));
    assert!(settings.fix && settings.verify.is_empty());
    assert_eq!(settings.reviews, ".tribunal/reviews");
}

/// The block as its documentation shows it: indented, because it belongs under a key.
const REVIEW_LOOP: &str = r#"
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

fn is_pasted(settings: &Settings, output_folder: &str) {
    let (limits, tasks) = (&settings.limits, &settings.tasks);
    assert_eq!((limits.rounds, limits.fix_iterations), (2, 1));
    assert_eq!((tasks.reviewer_timeout_ms, tasks.party_timeout_ms), (120_000, 180_000));
    assert_eq!((tasks.elicitation_timeout_ms, tasks.fixer_timeout_ms), (Some(130_000), 140_000));
    assert_eq!((tasks.required_issues, tasks.max_issues_per_agent, tasks.max_concurrent_fixers), (4, 6, 4));
    let plans = &tasks.plans;
    assert_eq!((plans.min_agents, plans.max_rounds, plans.min_methods), (5, 1, 4));
    assert_eq!(settings.reviews, format!("{output_folder}/found"));
}

#[test]
fn the_review_loop_block_is_taken_alone_and_under_automation_and_in_bmad_s_file() {
    let alone = [("_bmad/bmm/config.yaml", "output_folder: out\n"), (FILE, REVIEW_LOOP)];
    let reading = read(FILE, REVIEW_LOOP, Manner::Strict);
    assert_eq!(reading.problems, []);
    let line = REVIEW_LOOP.lines().position(|line| line.contains("max_review_rounds")).map(|index| index + 1);
    assert_eq!(effective(&alone).origin("limits.max_review_rounds").unwrap().line, line);

    let under = format!("{AGENT}automation:\n  enabled: true\n  progress: {{}}\n{REVIEW_LOOP}");
    let strict = read(FILE, &under, Manner::Strict);
    assert_eq!(strict.problems.len(), 1, "only the key that nobody knows: {:?}", strict.problems);
    let under = under.replace("  progress: {}\n", "");
    is_pasted(&settings(&[(FILE, &under)]), ".tribunal");

    let bmad =
        format!("output_folder: \"{{project-root}}/_out\"\nautomation:\n  progress: {{}}\n{REVIEW_LOOP}");
    is_pasted(&settings(&[("_bmad/bmm/config.yaml", &bmad), (FILE, AGENT)]), "_out");
}

#[test]
fn the_automation_blocks_are_taken() {
    let text = format!(
        "{AGENT}{}",
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
    assert_eq!(settings(&[(FILE, &text)]).tier.number(), 3, "the default tier, where it is left to us");
    assert_eq!(effective(&[(FILE, &text)]).typed().progress, Mode::Silent);
    let chosen = text.replace("auto-suggest", "1");
    assert_eq!(settings(&[(FILE, &chosen)]).tier.number(), 1, "the tier wins over the default tier");
    let small = format!("{AGENT}automation:\n  enabled: true\n  tier: 4\n  require_final_approval: true\n");
    assert_eq!(settings(&[(FILE, &small)]).tier.number(), 4);
}

#[test]
fn an_agent_that_is_defined_anew_is_not_mixed_with_the_one_before() {
    let user = project(&[("user.yaml", "agents: {mine: {driver: replay, script: s.yaml}}\nlevel: dual\n")]);
    let here = project(&[(FILE, AGENT)]);
    let given = Given { user_file: Some(user.path().join("user.yaml")), ..Given::default() };
    let wishes = Wishes { given, ..Wishes::default() };
    let resolved = resolve(here.path(), Subject::at("plan.md", None), &wishes).unwrap();
    assert_eq!(resolved.settings.level, Some(Level::Dual));
    assert_eq!(resolved.items.len(), 1, "the project's command is the one that would run");
}

#[test]
fn where_agents_write_and_when_it_lands_can_be_set() {
    assert_eq!(settings(&[(FILE, AGENT)]).tasks.writing, WritingSettings::default());
    let set = format!("{AGENT}approve: each\ncopies: {{seed: [.env, ./vendor/, .env]}}\n");
    let writing = settings(&[(FILE, &set)]).tasks.writing;
    assert_eq!(
        writing,
        WritingSettings {
            approve_each: true,
            seeds: vec![".env".into(), "vendor".into()],
            in_session: false
        }
    );
    let refused = |seed: &str| {
        let folder = project(&[(FILE, &format!("{AGENT}copies:\n  seed: [{seed}]\n"))]);
        let complaint = resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default()).unwrap_err();
        complaint.to_string().replace(&folder.path().display().to_string(), "[project]")
    };
    insta::assert_snapshot!(refused("../secrets"), @r"
    [!] [project]/tribunal.yaml:3: `copies.seed` is `../secrets`, which is outside the project
        Nothing was started.
        1. name something below the project's root, here or as `copies.seed` in tribunal.yaml
    ");
    insta::assert_snapshot!(refused(".git/config"), @r"
    [!] [project]/tribunal.yaml:3: `copies.seed` has `.git/config`, which no copy ever has
        It holds what keeps the project's history. Nothing was started.
        1. take it out of the list
    ");
}

/// Three agents, each stronger than the one before it.
const LADDER: &str = "agents:
  use: [fast]
  fast: {driver: command, argv: [f], provider: ' Acme ', stronger: big}
  big: {driver: command, argv: [b], provider: acme, stronger: huge}
  huge: {driver: command, argv: [h]}
  idle: {driver: command, argv: [i], stronger: big}
";

#[test]
fn a_stronger_agent_that_is_not_used_stands_in_reserve_with_its_own() {
    let names = |specs: &[AgentSpec]| -> Vec<String> {
        specs.iter().map(|spec| format!("{} of {}", spec.name, spec.provider())).collect()
    };
    let pinned = settings(&[(FILE, LADDER)]);
    assert_eq!(names(&pinned.agents), ["fast of acme"]);
    assert_eq!(names(&pinned.reserves), ["big of acme", "huge of huge"]);
    let stronger = |spec: &AgentSpec| spec.stronger.as_ref().map(ToString::to_string);
    assert_eq!(stronger(&pinned.agents[0]).as_deref(), Some("big"));
    assert_eq!(stronger(&pinned.reserves[0]).as_deref(), Some("huge"));

    let both = LADDER.replace("use: [fast]", "use: [idle, fast, huge]");
    let pinned = settings(&[(FILE, &both)]);
    assert_eq!(names(&pinned.agents), ["idle of idle", "fast of acme", "huge of huge"]);
    assert_eq!(names(&pinned.reserves), ["big of acme"], "once, and not those who take part anyway");
}

#[test]
fn a_command_in_reserve_needs_trust_like_any_other() {
    let folder = project(&[(FILE, LADDER)]);
    let resolved = resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default()).unwrap();
    let commands: Vec<String> = resolved.items.iter().map(Item::command).collect();
    assert_eq!(commands, ["f", "b", "h"]);
}

#[test]
fn a_reserve_is_held_to_the_same_rules_as_an_agent_that_takes_part() {
    let broken = LADDER.replace("huge: {driver: command, argv: [h]}", "huge: {provider: acme}");
    let folder = project(&[(FILE, &broken)]);
    let complaint = resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default()).unwrap_err();
    assert!(complaint.what.contains("agent `huge`: it has no `driver`"), "{complaint}");
    assert!(complaint.to_string().contains("tribunal.yaml:5"), "{complaint}");
}

#[test]
fn names_that_lead_nowhere_are_told_all_at_once_with_their_lines() {
    let text = "agents:
  use: [a, absent]
  a: {driver: command, argv: [x], stronger: a}
  big: {driver: command, argv: [x], stronger: biger}
  bigger: {driver: command, argv: [x], stronger: zzz}
  one: {driver: command, argv: [x], stronger: two}
  two: {driver: command, argv: [x], stronger: three}
  three: {driver: command, argv: [x], stronger: one}
  into: {driver: command, argv: [x], stronger: one}
";
    let folder = project(&[(FILE, text)]);
    let complaint = resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default()).unwrap_err();
    let said = complaint.to_string().replace(&folder.path().display().to_string(), "[project]");
    insta::assert_snapshot!(said, @r"
    [!] [project]/tribunal.yaml, line 2: there is no agent `absent`
        Nothing was started.
        Also wrong:
          line 3: `agents.a.stronger` is the agent itself
            name another agent, or remove the line
          line 4: `agents.big.stronger` is `biger`, and there is no such agent
            did you mean `bigger`?
          line 5: `agents.bigger.stronger` is `zzz`, and there is no such agent
            define it under `agents:`; defined are: a, big, into, one, three, two
          line 6: `agents.one.stronger` is `two`, which leads back to it: `one`, then `two`, then `three`, then `one` again
            let the strongest of them have no stronger one
        1. define it under `agents:`; defined are: a, big, bigger, into, one, three, two
    ");
}

#[test]
fn an_agent_that_nobody_defined_is_told_where_it_is_asked_for() {
    let said = |text: &str, agent: Option<&str>| {
        let folder = project(&[(FILE, text)]);
        let wishes = Wishes::default().flag("--agent", "agents.use", agent.map(String::from));
        resolve(folder.path(), Subject::at("plan.md", None), &wishes).unwrap_err().to_string()
    };
    insta::assert_snapshot!(said(AGENT, Some("mein")), @r"
    [!] --agent: there is no agent `mein`
        Nothing was started.
        1. did you mean `mine`?
    ");
    insta::assert_snapshot!(said("tier: 1\n", Some("cluade-code")), @r"
    [!] --agent: there is no agent `cluade-code`
        Nothing was started.
        1. did you mean `claude-code`?
    ");
    insta::assert_snapshot!(said("tier: 1\n", Some("mine")), @r"
    [!] --agent: there is no agent `mine`
        Nothing was started.
        1. name claude-code or codex, or define it in tribunal.yaml: agents: {mine: {driver: command, argv: […]}}
    ");
}

#[test]
fn the_roster_of_the_project_is_pinned_and_a_bad_one_is_only_a_warning() {
    let manifest = "_bmad/_config/agent-manifest.csv";
    let resolved = |text: &str| {
        let folder = project(&[(FILE, AGENT), (manifest, text)]);
        resolve(folder.path(), Subject::at("plan.md", None), &Wishes::default()).unwrap()
    };
    let good = resolved("name,title,role\na,Clerk,bills\nb,Cook,food\nc,Pilot,charts\n");
    let roster = &good.settings.tasks.plans.roster;
    assert_eq!(
        roster.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        "Clerk (bills), Cook (food), Pilot (charts)"
    );
    assert_eq!(good.warnings, [""; 0]);
    let bad = resolved("this is no manifest");
    assert_eq!(bad.settings.tasks, TaskSettings::default());
    assert_eq!(bad.warnings.len(), 1, "{:?}", bad.warnings);
}

#[test]
fn the_wanted_confidence_is_pinned_only_if_somebody_set_it() {
    assert_eq!(settings(&[(FILE, AGENT)]).target_confidence, None);
    assert_eq!(settings(&[(FILE, &format!("{AGENT}target_confidence: 80\n"))]).target_confidence, Some(80));
}

#[test]
fn on_a_narrow_screen_values_are_cut_and_origins_are_not() {
    let user = "a-home/with-a-long-name/config/tribunal/settings.yaml";
    let folder =
        project(&[(user, "limits: {max_cost: 2}\n"), (FILE, "tier: 1\nverify: [make a very long check]\n")]);
    let given = Given { user_file: Some(folder.path().join(user)), ..Given::default() };
    let effective = gather(folder.path(), &given).unwrap();
    let screen = Screen { width: Some(60), ..Screen::default() };
    let drawn = draw(&effective, &folder.path().display().to_string(), false, &screen);
    let shown = |name: &str| {
        let lines = drawn.lines().skip_while(|line| !line.contains(name)).take(3);
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(shown("verify"), @r"
    * verify                   [make a very…  tribunal.yaml:2
        commands, [make test, [cargo, test]]
      jobs                     3              default
    ");
    insta::assert_snapshot!(shown("max_cost"), @r"
    * max_cost                 2.00
        a-home/with-a-long-name/config/tribunal/settings.yaml:1
        an amount of money, more than 0
    ");
    assert!(drawn.lines().all(|line| line.chars().count() < 60), "{drawn}");
}

#[test]
fn folders_stay_inside_the_project() {
    for (said, folder) in [
        ("\"{project-root}/_bmad-output\"", Some("_bmad-output/reviews")),
        ("./docs/out/", Some("docs/out/reviews")),
        ("/srv/out", None),
        ("../out", None),
        ("\"{project-root}\"", None),
        ("\"{elsewhere}/x\"", None),
    ] {
        let files = project(&[(FILE, &format!("{AGENT}output_folder: {said}\n"))]);
        let resolved = resolve(files.path(), Subject::at("plan.md", None), &Wishes::default());
        match (resolved, folder) {
            (Ok(resolved), Some(folder)) => assert_eq!(resolved.settings.reviews, folder),
            (Err(complaint), None) => {
                assert!(complaint.what.contains("tribunal.yaml:2: `output_folder`"), "{complaint}")
            }
            (other, _) => panic!("{said}: {other:?}"),
        }
    }
    let bmad = "project_name: x\n";
    assert_eq!(settings(&[("_bmad/bmm/config.yaml", bmad), (FILE, AGENT)]).reviews, "_bmad-output/reviews");
    // BMAD's value matters only if no stronger layer sets one.
    let mended = format!("{AGENT}output_folder: out\n");
    let files = [("_bmad/bmm/config.yaml", "output_folder: /srv/out\n"), (FILE, mended.as_str())];
    assert_eq!(settings(&files).reviews, "out/reviews");
}

#[test]
fn a_check_is_a_text_for_the_shell_or_a_list_of_words() {
    let text =
        format!("{AGENT}verify:\n  - make test && make lint\n  - [cargo, test, --, \"it's a name\", '']\n");
    assert_eq!(
        settings(&[(FILE, &text)]).verify,
        ["make test && make lint", r"cargo test -- 'it'\''s a name' ''"]
    );
}
