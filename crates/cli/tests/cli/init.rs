//! `tribunal init`: it shows its changes first, leaves everything else byte for byte as it was, and can be undone.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::common::{CommandOutput, Sandbox, TRIBUNAL, write_program};

const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
const SHARED_SETTINGS: &str = ".claude/settings.json";

/// A project and a path with these clients on it. None of the clients may be started.
struct ClientProject {
    sandbox: Sandbox,
    bin_dir: PathBuf,
}

impl ClientProject {
    fn new(clients: &[&str]) -> ClientProject {
        let sandbox = Sandbox::new();
        // The directory marks the project's root, so that no parent of the temporary directory is taken for it.
        fs::create_dir(sandbox.path_of(".tribunal")).unwrap();
        let bin_dir = sandbox.home_dir().with_file_name("bin");
        fs::create_dir(&bin_dir).unwrap();
        for client in clients {
            let trace_path = bin_dir.join("started").display().to_string();
            write_program(&bin_dir.join(client), &format!("#!/bin/sh\necho {client} >> '{trace_path}'\n"));
        }
        symlink(TRIBUNAL, bin_dir.join("tribunal")).unwrap();
        ClientProject { sandbox, bin_dir }
    }

    /// Creates the same project in a git repository.
    fn new_in_git(clients: &[&str]) -> ClientProject {
        let project = ClientProject::new(clients);
        let search_path = std::env::var_os("PATH").unwrap();
        let git_path = std::env::split_paths(&search_path)
            .map(|directory| directory.join("git"))
            .find(|git_path| git_path.is_file())
            .unwrap();
        symlink(git_path, project.bin_dir.join("git")).unwrap();
        let mut git_init = Command::new("git");
        project.sandbox.set_home_env(&mut git_init);
        assert!(git_init.args(["init", "-q"]).current_dir(project.sandbox.root_dir()).status().unwrap().success());
        project
    }

    fn run_init(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.sandbox.tribunal_command(&[&["init"], args].concat());
        let output = CommandOutput::from_output(command.env("PATH", &self.bin_dir).output().unwrap());
        assert!(!self.bin_dir.join("started").exists(), "a client was started");
        assert!(self.sandbox.temporary_leftovers().is_empty());
        output
    }

    fn run_successfully(&self, args: &[&str]) -> CommandOutput {
        let output = self.run_init(args);
        assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
        output
    }

    fn run_json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run_successfully(&[args, &["--json"]].concat()).stdout).unwrap()
    }

    /// Returns every file of the project with its text.
    fn project_files(&self) -> Vec<(String, String)> {
        let mut found_files = Vec::new();
        let mut directories = vec![self.sandbox.root_dir().to_path_buf()];
        while let Some(directory) = directories.pop() {
            for dir_entry in fs::read_dir(directory).unwrap().flatten() {
                let entry_path = dir_entry.path();
                if entry_path.is_dir() && entry_path.file_name().unwrap() != ".git" {
                    directories.push(entry_path);
                } else if entry_path.is_file() {
                    let file_name = entry_path.strip_prefix(self.sandbox.root_dir()).unwrap().display().to_string();
                    found_files.push((file_name, fs::read_to_string(entry_path).unwrap()));
                }
            }
        }
        found_files.sort();
        found_files
    }

    fn file_names(&self) -> Vec<String> {
        self.project_files().into_iter().map(|(name, _)| name).collect()
    }

    fn normalize_paths(&self, text: &str) -> String {
        let parent_dir = self.sandbox.root_dir().parent().unwrap().display().to_string();
        let own_program = Path::new(TRIBUNAL).canonicalize().unwrap().display().to_string();
        self.sandbox.normalize_output(text).replace(&parent_dir, "[beside]").replace(&own_program, "[tribunal]")
    }

    /// Asserts that the command changes nothing and exits with this code; returns its message.
    fn assert_refused(&self, args: &[&str], expected_code: i32) -> String {
        let files_before = self.project_files();
        let output = self.run_init(args);
        assert_eq!(output.exit_code, Some(expected_code), "{}{}", output.stdout, output.stderr);
        assert_eq!(self.project_files(), files_before, "nothing is written anywhere");
        self.normalize_paths(&output.stderr)
    }
}

fn hook_commands(project: &ClientProject, file: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(&project.sandbox.read_file(file)).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    hooks.values().map(|groups| groups[0]["hooks"][0]["command"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_fresh_project_gets_hooks_settings_and_ignored_files() {
    let project = ClientProject::new_in_git(&["claude"]);
    let output = project.run_successfully(&["--yes"]);
    assert_eq!(project.file_names(), [LOCAL_SETTINGS, ".gitignore", "tribunal.yaml"]);
    assert_eq!(hook_commands(&project, LOCAL_SETTINGS).len(), 8);
    assert_eq!(
        project.sandbox.read_file(".gitignore"),
        ".tribunal/\n.claude/review-loop-state.yaml\n.claude/settings.local.json\n"
    );
    insta::assert_snapshot!(project.normalize_paths(&format!("{}{}", output.stdout, output.stderr)));
    // The settings reader of Tribunal must accept the new file.
    let inspected = project.sandbox.run_tribunal(&["inspect", "settings", "tribunal.yaml"]);
    assert_eq!(inspected.exit_code, Some(0), "{}{}", inspected.stdout, inspected.stderr);
}

#[test]
fn a_second_init_changes_nothing() {
    let project = ClientProject::new_in_git(&["claude", "codex", "copilot"]);
    project.run_successfully(&["--yes"]);
    let files_before = project.project_files();
    let output = project.run_successfully(&[]);
    assert_eq!(project.project_files(), files_before);
    insta::assert_snapshot!(project.normalize_paths(&format!("{}{}", output.stdout, output.stderr)));
}

#[test]
fn other_contents_of_a_settings_file_stay_byte_for_byte() {
    for (case_name, old_text) in [
        ("order and dress", "{\n\t\"zeta\": [1,2],\n\t\"alpha\" : {\"b\":1, \"a\":2}\n}\n"),
        (
            "line ends and a mark",
            concat!(
                "\u{feff}{\r\n    \"model\": \"opus\",\r\n    \"hooks\": {\r\n        \"Stop\": [\r\n            {\r\n",
                "                \"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]\r\n",
                "            }\r\n        ]\r\n    }\r\n}",
            ),
        ),
        ("comments", "// mine\n{\n  \"a\": 1, // one\n  /* two */ \"b\": 2,\n}\n"),
        ("one line", "{\"permissions\":{\"allow\":[]}}"),
    ] {
        let project = ClientProject::new(&["claude"]);
        project.sandbox.write_file(LOCAL_SETTINGS, old_text);
        fs::set_permissions(project.sandbox.path_of(LOCAL_SETTINGS), fs::Permissions::from_mode(0o600)).unwrap();
        project.run_successfully(&["--yes"]);
        let new_text = project.sandbox.read_file(LOCAL_SETTINGS);
        assert!(new_text.contains("tribunal hook stop --client claude-code"), "{case_name}: {new_text}");
        let mut new_characters = new_text.chars();
        assert!(old_text.chars().all(|wanted| new_characters.any(|c| c == wanted)), "{case_name}: {new_text}");
        let mode = fs::metadata(project.sandbox.path_of(LOCAL_SETTINGS)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{case_name}");
        project.run_successfully(&["--remove", "--yes"]);
        assert_eq!(project.sandbox.read_file(LOCAL_SETTINGS), old_text, "{case_name}");
    }
}

#[test]
fn remove_restores_the_state_before_init() {
    let project = ClientProject::new_in_git(&["claude", "codex", "copilot", "gemini"]);
    project.sandbox.write_file("plan.md", "# Plan\n");
    let init_output = project.run_successfully(&["--yes"]);
    assert!(init_output.stdout.contains("\"AfterAgent\": ["), "what Gemini needs is said: {}", init_output.stdout);
    let created_files =
        [LOCAL_SETTINGS, ".codex/hooks.json", ".github/hooks/tribunal.json", ".gitignore", "plan.md", "tribunal.yaml"];
    assert_eq!(project.file_names(), created_files);
    let output = project.run_successfully(&["--remove", "--yes"]);
    assert_eq!(project.file_names(), [".gitignore", "plan.md", "tribunal.yaml"]);
    assert!(output.stderr.contains("note: left unchanged: tribunal.yaml, .gitignore"), "{}", output.stderr);
    let client_dirs = [".claude", ".codex", ".github"];
    assert!(client_dirs.iter().all(|folder| !project.sandbox.path_of(folder).exists()));
    let output = project.run_successfully(&["--remove"]);
    assert!(output.stdout.ends_with("no hooks to remove\n"), "{}", output.stdout);
}

#[test]
fn removing_says_what_was_removed() {
    let project = ClientProject::new(&["claude", "codex"]);
    // One file has settings of the user, so it stays; the other has only hooks, so it is deleted.
    project.sandbox.write_file(LOCAL_SETTINGS, "{\n  \"model\": \"opus\"\n}\n");
    project.run_successfully(&["--yes"]);
    let preview = project.run_successfully(&["--remove", "--dry-run"]);
    let expected_text = "nothing was removed; to remove them, run `tribunal init --remove --yes`\n";
    assert!(preview.stdout.ends_with(expected_text), "{}", preview.stdout);
    let refusal = project.assert_refused(&["--remove"], 2);
    for expected_text in ["Nothing was removed.", "remove the hooks: `tribunal init --remove --yes`"] {
        assert!(refusal.contains(expected_text), "{refusal}");
    }
    let output = project.run_successfully(&["--remove", "--yes"]);
    let expected_text = format!("removed hooks from {LOCAL_SETTINGS}; deleted .codex/hooks.json\n");
    assert!(output.stdout.ends_with(&expected_text), "{}", output.stdout);
    for text in [&output.stdout, &output.stderr] {
        assert!(!["wrote", "written", "installed"].iter().any(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn one_client_alone_can_be_removed() {
    let project = ClientProject::new(&["claude", "codex"]);
    project.run_successfully(&["--yes"]);
    project.run_successfully(&["--remove", "--client", "codex", "--yes"]);
    assert_eq!(project.file_names(), [LOCAL_SETTINGS, "tribunal.yaml"]);
}

#[test]
fn without_a_terminal_nothing_is_written_unless_confirmed_by_a_flag() {
    let project = ClientProject::new(&["claude"]);
    insta::assert_snapshot!(project.assert_refused(&["--profile", "solo"], 2), @"
    error: cannot ask for confirmation without a terminal
      Nothing was written.
      1. write them: `tribunal init --profile solo --yes`
      2. or only show the changes: `tribunal init --profile solo --dry-run`
    ");
    let output = project.run_successfully(&["--dry-run"]);
    assert!(project.file_names().is_empty());
    assert!(
        output.stdout.contains("+  \"hooks\": {") && output.stdout.contains("+++ b/tribunal.yaml"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.ends_with("was written; to write it, run `tribunal init --yes`\n"), "{}", output.stdout);
}

#[test]
fn a_settings_file_that_cannot_be_parsed_stops_everything() {
    let project = ClientProject::new_in_git(&["claude", "codex"]);
    project.sandbox.write_file(".codex/hooks.json", "{\n  \"hooks\": {\n    \"Stop\": [,]\n  }\n}\n");
    let refusal = project.assert_refused(&["--yes"], 2);
    assert!(refusal.starts_with("error: .codex/hooks.json:3:14: expected a value\n"), "{refusal}");
    for expected_text in ["No file was changed.", "tribunal hook stop --client codex", "then run `tribunal init`\n"] {
        assert!(refusal.contains(expected_text), "{refusal}");
    }
    for (hooks_text, expected_problem) in [
        ("[]", "1:1: expected a JSON object"),
        ("{\"hooks\": \"none\"}", "1:11: `hooks` is not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "1:20: `hooks.Stop` is not an array"),
        ("{\"a\": 1,\n \"a\": 2}", "2:2: duplicate key `a`"),
        ("", "1:1: the file has no JSON value"),
    ] {
        project.sandbox.write_file(".codex/hooks.json", hooks_text);
        let refusal = project.assert_refused(&["--yes"], 2);
        assert!(refusal.starts_with(&format!("error: .codex/hooks.json:{expected_problem}\n")), "{refusal}");
        project.assert_refused(&["--remove", "--yes"], 2);
    }
    fs::write(project.sandbox.path_of(".codex/hooks.json"), b"{\"a\": \"\xe9\"}").unwrap();
    let output = project.run_init(&["--yes"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(!project.sandbox.path_of("tribunal.yaml").exists());
}

#[test]
fn a_hook_entry_that_the_user_changed_is_not_overwritten() {
    let project = ClientProject::new(&["claude", "copilot"]);
    project.run_successfully(&["--yes"]);
    let settings = project.sandbox.read_file(LOCAL_SETTINGS);
    let changed_settings =
        settings.replacen("hook stop --client claude-code", "hook stop --client claude-code; date", 1);
    project.sandbox.write_file(LOCAL_SETTINGS, &changed_settings);
    for args in [&["--yes"][..], &["--remove", "--yes"], &["--shared", "--yes"]] {
        let refusal = project.assert_refused(args, 3);
        assert!(
            refusal.starts_with("error: .claude/settings.local.json:6:11: Tribunal's hook for `Stop` was edited"),
            "{refusal}"
        );
    }
    project.sandbox.write_file(LOCAL_SETTINGS, &settings);
    let hooks_text = project.sandbox.read_file(".github/hooks/tribunal.json");
    project.sandbox.write_file(".github/hooks/tribunal.json", &hooks_text.replacen("10", "99", 1));
    let refusal = project.assert_refused(&["--remove", "--yes"], 3);
    assert!(refusal.contains("this file belongs to Tribunal, but was edited"), "{refusal}");
}

#[test]
fn symlinks_that_leave_the_project_are_not_followed() {
    let project = ClientProject::new(&["claude"]);
    let outside_dir = project.sandbox.home_dir().with_file_name("outside");
    fs::create_dir_all(&outside_dir).unwrap();
    fs::write(outside_dir.join("settings.local.json"), "{}").unwrap();
    symlink(&outside_dir, project.sandbox.path_of(".claude")).unwrap();
    let refusal = project.assert_refused(&["--yes"], 2);
    assert!(refusal.contains("leads out of the project") && refusal.contains("No file was changed."), "{refusal}");
    fs::remove_file(outside_dir.join("settings.local.json")).unwrap();
    project.assert_refused(&["--yes"], 2);
    assert_eq!(fs::read_dir(&outside_dir).unwrap().count(), 0);

    // A link that stays inside the project is followed, as the user may keep the file elsewhere.
    fs::remove_file(project.sandbox.path_of(".claude")).unwrap();
    project.sandbox.write_file("kept/claude.json", "{}\n");
    fs::create_dir(project.sandbox.path_of(".claude")).unwrap();
    symlink("../kept/claude.json", project.sandbox.path_of(LOCAL_SETTINGS)).unwrap();
    project.run_successfully(&["--yes"]);
    assert!(project.sandbox.path_of(LOCAL_SETTINGS).is_symlink());
    assert!(project.sandbox.read_file("kept/claude.json").contains("tribunal hook stop"));
}

#[test]
fn a_shared_file_has_hooks_that_do_nothing_where_tribunal_is_missing() {
    let project = ClientProject::new(&["claude"]);
    project.run_successfully(&["--yes"]);
    let command_output = project.run_successfully(&["--shared", "--yes"]);
    assert!(
        command_output.stdout.contains("claude-code: hooks in .claude/settings.local.json (8 removed)"),
        "{}",
        command_output.stdout
    );
    assert_eq!(project.file_names(), [SHARED_SETTINGS, "tribunal.yaml"], "in both they would run twice");
    for command in hook_commands(&project, SHARED_SETTINGS) {
        assert!(command.starts_with("command -v tribunal >/dev/null 2>&1 && exec tribunal hook "), "{command}");
        let output = Command::new("/bin/sh").arg("-c").arg(&command).env("PATH", "/nowhere").output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    let command_output = project.run_successfully(&[]);
    assert!(
        command_output.stdout.contains("claude-code: hooks in .claude/settings.json (8 unchanged)"),
        "{}",
        command_output.stdout
    );
}

#[test]
fn hooks_start_this_program_and_are_updated_when_it_moves() {
    let project = ClientProject::new(&["claude"]);
    fs::remove_file(project.bin_dir.join("tribunal")).unwrap();
    let output = project.run_successfully(&["--yes"]);
    assert!(output.stderr.contains("this program is not on the PATH as `tribunal`"), "{}", output.stderr);
    let own_program = Path::new(TRIBUNAL).canonicalize().unwrap();
    let first_command = &hook_commands(&project, LOCAL_SETTINGS)[0];
    assert!(
        first_command.starts_with(own_program.to_str().unwrap()) && first_command.ends_with(" --client claude-code"),
        "{first_command}"
    );

    symlink(TRIBUNAL, project.bin_dir.join("tribunal")).unwrap();
    let output = project.run_successfully(&["--yes"]);
    assert!(output.stdout.contains("8 updated") && output.stdout.contains("\n-"), "{}", output.stdout);
    assert!(hook_commands(&project, LOCAL_SETTINGS).iter().all(|command| command.starts_with("tribunal hook ")));
}

#[test]
fn a_profile_fills_a_new_file_and_changes_no_existing_one() {
    for (profile, tier, approve) in
        [("solo", 1, "never"), ("team", 2, "never"), ("enterprise", 4, "each"), ("quick-fix", 0, "never")]
    {
        let project = ClientProject::new(&[]);
        let document = project.run_json(&["--profile", profile, "--yes"]);
        assert_eq!(document["profile"], profile);
        let effective_settings = project.sandbox.run_json(&["inspect", "settings"]);
        let rows = effective_settings["settings"].as_array().unwrap();
        let tier_row = rows.iter().find(|row| row["path"] == "tier").unwrap();
        assert_eq!(tier_row["value"].to_string().trim_matches('"'), tier.to_string(), "{tier_row}");
        let approve_row = rows.iter().find(|row| row["path"] == "approve").unwrap();
        assert_eq!((&approve_row["value"], &approve_row["layer"]), (&approve.into(), &"project".into()), "{profile}");
        let files_before = project.project_files();
        let output = project.run_successfully(&["--profile", "enterprise"]);
        assert_eq!(project.project_files(), files_before);
        let expected_text = "tribunal.yaml exists and is not changed; the profile enterprise would set tier=4";
        assert!(output.stderr.contains(expected_text), "{}", output.stderr);
    }
    assert_eq!(ClientProject::new(&[]).run_init(&["--profile", "big"]).exit_code, Some(2));
}

#[test]
fn files_that_git_already_ignores_are_not_listed_again() {
    let project = ClientProject::new_in_git(&["claude"]);
    project.sandbox.write_file(".gitignore", "node_modules\r\n.*/\r\n*.local.json");
    project.run_successfully(&["--yes"]);
    assert_eq!(project.sandbox.read_file(".gitignore"), "node_modules\r\n.*/\r\n*.local.json");
    project.sandbox.write_file(".gitignore", "node_modules\r\n.tribunal");
    project.run_successfully(&["--yes"]);
    assert_eq!(
        project.sandbox.read_file(".gitignore"),
        "node_modules\r\n.tribunal\r\n.claude/review-loop-state.yaml\r\n"
    );
}

#[test]
fn reasons_why_a_hook_does_not_run_are_reported() {
    let project = ClientProject::new(&["claude", "codex"]);
    project.sandbox.write_file(LOCAL_SETTINGS, "{\n  // mine\n  \"disableAllHooks\": true\n}\n");
    let output = project.run_successfully(&["--dry-run"]);
    let lines = project.normalize_paths(&output.stderr).replace(", so no hook", ",\n    so no hook");
    let lines = lines.replace("; start `codex`", ";\n    start `codex`");
    insta::assert_snapshot!(lines, @"
    warning: .claude/settings.local.json:2:3: comment: claude-code ignores files with comments or trailing commas,
        so no hook runs
    warning: .claude/settings.local.json:3: `disableAllHooks` is set,
        so no hooks run
    note: codex: hooks run only after you trust this directory and each hook (Codex does not warn you);
        start `codex` here, then type `/hooks`
    ");
}

#[test]
fn the_json_document_lists_what_was_done_and_fits_its_schema() {
    let project = ClientProject::new(&["claude", "gemini"]);
    let schema = project.sandbox.run_json(&["schema", "init"]);
    let fits_schema = |document: &Value| jsonschema::validator_for(&schema).unwrap().is_valid(document);
    let document = project.run_json(&["--dry-run"]);
    assert!(fits_schema(&document) && document["done"] == false, "{document}");
    let document = project.run_json(&["--yes"]);
    assert!(fits_schema(&document) && document["done"] == true, "{document}");
    assert_eq!(document["schema"], "tribunal.init/1");
    assert_eq!(document["clients"][0]["added"], 8);
    assert_eq!(document["files"][0]["path"], LOCAL_SETTINGS);
    assert_eq!(document["by_hand"][0]["file"], "~/.gemini/settings.json");
    let second_document = project.run_json(&[]);
    assert_eq!((&second_document["done"], &second_document["files"]), (&Value::Bool(false), &Value::Array(Vec::new())));
}

#[test]
fn without_a_client_everything_else_is_set_up() {
    let project = ClientProject::new(&[]);
    let output = project.run_successfully(&["--yes"]);
    assert_eq!(project.file_names(), ["tribunal.yaml"]);
    assert!(output.stderr.contains("no client found on the PATH"), "{}", output.stderr);
    project.run_successfully(&["--client", "claude-code", "--yes"]);
    assert_eq!(project.file_names(), [LOCAL_SETTINGS, "tribunal.yaml"]);
    let output = project.run_init(&["--client", "cursor"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("unknown client `cursor`"), "{}", output.stderr);
}

#[test]
fn what_a_killed_init_left_is_removed_by_the_next_one() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run_tribunal(&["init", "--yes", "--client", "claude-code"]).exit_code, Some(0));
    let leftovers = [".tribunal-tmp-999999999@1@0-abc", ".claude/.tribunal-tmp-999999999@1@0-def"];
    leftovers.iter().for_each(|leftover| sandbox.write_file(leftover, "half a file"));
    sandbox.write_file(".claude/.tribunal-tmp-mine", "not ours");
    assert_eq!(sandbox.run_tribunal(&["init", "--yes", "--client", "claude-code"]).exit_code, Some(0));
    assert!(leftovers.iter().all(|leftover| !sandbox.path_of(leftover).exists()));
    assert!(sandbox.path_of(".claude/.tribunal-tmp-mine").exists());
}
