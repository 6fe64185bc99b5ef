//! `tribunal init`: it shows its changes first, leaves everything else byte for byte as it was, and can be undone.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::common::{Ran, Sandbox, TRIBUNAL, write_program};

const LOCAL: &str = ".claude/settings.local.json";
const SHARED: &str = ".claude/settings.json";

/// A project and a path with these clients on it. None of the clients may be started.
struct Place {
    sandbox: Sandbox,
    bin: PathBuf,
}

impl Place {
    fn new(clients: &[&str]) -> Place {
        let sandbox = Sandbox::new();
        // The directory marks the project's root, so that no parent of the temporary directory is taken for it.
        fs::create_dir(sandbox.path(".tribunal")).unwrap();
        let bin = sandbox.home().with_file_name("bin");
        fs::create_dir(&bin).unwrap();
        for client in clients {
            let trace = bin.join("started").display().to_string();
            write_program(&bin.join(client), &format!("#!/bin/sh\necho {client} >> '{trace}'\n"));
        }
        symlink(TRIBUNAL, bin.join("tribunal")).unwrap();
        Place { sandbox, bin }
    }

    /// Creates the same project in a git repository.
    fn in_git(clients: &[&str]) -> Place {
        let place = Place::new(clients);
        let path = std::env::var_os("PATH").unwrap();
        let git =
            std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
        symlink(git, place.bin.join("git")).unwrap();
        let mut init = Command::new("git");
        place.sandbox.at_home(&mut init);
        assert!(init.args(["init", "-q"]).current_dir(place.sandbox.root()).status().unwrap().success());
        place
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.sandbox.command(&[&["init"], args].concat());
        let ran = Ran::of(command.env("PATH", &self.bin).output().unwrap());
        assert!(!self.bin.join("started").exists(), "a client was started");
        assert!(self.sandbox.litter().is_empty());
        ran
    }

    fn good(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[args, &["--json"]].concat()).out).unwrap()
    }

    /// Returns every file of the project with its text.
    fn files(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.sandbox.root().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap().flatten() {
                let path = item.path();
                if path.is_dir() && path.file_name().unwrap() != ".git" {
                    folders.push(path);
                } else if path.is_file() {
                    let name = path.strip_prefix(self.sandbox.root()).unwrap().display().to_string();
                    found.push((name, fs::read_to_string(path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, _)| name).collect()
    }

    fn shown(&self, text: &str) -> String {
        let beside = self.sandbox.root().parent().unwrap().display().to_string();
        let own = Path::new(TRIBUNAL).canonicalize().unwrap().display().to_string();
        self.sandbox.normal(text).replace(&beside, "[beside]").replace(&own, "[tribunal]")
    }

    /// Asserts that the command changes nothing and exits with this code; returns its message.
    fn refused(&self, args: &[&str], code: i32) -> String {
        let before = self.files();
        let ran = self.run(args);
        assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
        assert_eq!(self.files(), before, "nothing is written anywhere");
        self.shown(&ran.err)
    }
}

fn commands(place: &Place, file: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(&place.sandbox.read(file)).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    hooks.values().map(|groups| groups[0]["hooks"][0]["command"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_fresh_project_gets_hooks_settings_and_ignored_files() {
    let place = Place::in_git(&["claude"]);
    let ran = place.good(&["--yes"]);
    assert_eq!(place.names(), [LOCAL, ".gitignore", "tribunal.yaml"]);
    assert_eq!(commands(&place, LOCAL).len(), 8);
    assert_eq!(
        place.sandbox.read(".gitignore"),
        ".tribunal/\n.claude/review-loop-state.yaml\n.claude/settings.local.json\n"
    );
    insta::assert_snapshot!(place.shown(&format!("{}{}", ran.out, ran.err)));
    // The settings reader of Tribunal must accept the new file.
    let read = place.sandbox.run(&["inspect", "settings", "tribunal.yaml"]);
    assert_eq!(read.code, Some(0), "{}{}", read.out, read.err);
}

#[test]
fn the_second_time_there_is_nothing_to_do() {
    let place = Place::in_git(&["claude", "codex", "copilot"]);
    place.good(&["--yes"]);
    let before = place.files();
    let ran = place.good(&[]);
    assert_eq!(place.files(), before);
    insta::assert_snapshot!(place.shown(&format!("{}{}", ran.out, ran.err)));
}

#[test]
fn what_stands_in_a_settings_file_stays_byte_for_byte() {
    for (name, text) in [
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
        let place = Place::new(&["claude"]);
        place.sandbox.write(LOCAL, text);
        fs::set_permissions(place.sandbox.path(LOCAL), fs::Permissions::from_mode(0o600)).unwrap();
        place.good(&["--yes"]);
        let new = place.sandbox.read(LOCAL);
        assert!(new.contains("tribunal hook stop --client claude-code"), "{name}: {new}");
        let mut rest = new.chars();
        assert!(text.chars().all(|wanted| rest.any(|c| c == wanted)), "{name}: {new}");
        let mode = fs::metadata(place.sandbox.path(LOCAL)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        place.good(&["--remove", "--yes"]);
        assert_eq!(place.sandbox.read(LOCAL), text, "{name}");
    }
}

#[test]
fn removed_means_as_it_was_before() {
    let place = Place::in_git(&["claude", "codex", "copilot", "gemini"]);
    place.sandbox.write("plan.md", "# Plan\n");
    let shown = place.good(&["--yes"]);
    assert!(shown.out.contains("\"AfterAgent\": ["), "what Gemini needs is said: {}", shown.out);
    let made =
        [LOCAL, ".codex/hooks.json", ".github/hooks/tribunal.json", ".gitignore", "plan.md", "tribunal.yaml"];
    assert_eq!(place.names(), made);
    let ran = place.good(&["--remove", "--yes"]);
    assert_eq!(place.names(), [".gitignore", "plan.md", "tribunal.yaml"]);
    assert!(ran.err.contains("[i] not touched: tribunal.yaml, .gitignore"), "{}", ran.err);
    let folders = [".claude", ".codex", ".github"];
    assert!(folders.iter().all(|folder| !place.sandbox.path(folder).exists()));
    let ran = place.good(&["--remove"]);
    assert!(ran.out.ends_with("there is nothing to change\n"), "{}", ran.out);
}

#[test]
fn one_client_alone_is_taken_out() {
    let place = Place::new(&["claude", "codex"]);
    place.good(&["--yes"]);
    place.good(&["--remove", "--client", "codex", "--yes"]);
    assert_eq!(place.names(), [LOCAL, "tribunal.yaml"]);
}

#[test]
fn without_a_terminal_nothing_is_written_unless_it_was_said_so() {
    let place = Place::new(&["claude"]);
    insta::assert_snapshot!(place.refused(&["--profile", "solo"], 2), @r"
    [!] there is nobody who could be asked whether these files may be written
        Nothing was written.
        1. if they may: tribunal init --profile solo --yes
        2. only to see the changes: tribunal init --profile solo --dry-run
    ");
    let ran = place.good(&["--dry-run"]);
    assert!(place.names().is_empty());
    assert!(ran.out.contains("+  \"hooks\": {") && ran.out.contains("+++ b/tribunal.yaml"), "{}", ran.out);
    assert!(ran.out.ends_with("nothing was written; to do it: tribunal init --yes\n"), "{}", ran.out);
}

#[test]
fn a_file_that_cannot_be_understood_stops_everything() {
    let place = Place::in_git(&["claude", "codex"]);
    place.sandbox.write(".codex/hooks.json", "{\n  \"hooks\": {\n    \"Stop\": [,]\n  }\n}\n");
    let said = place.refused(&["--yes"], 2);
    assert!(said.starts_with("[!] .codex/hooks.json:3:14: a value is missing\n"), "{said}");
    for wanted in
        ["Nothing was written, in no file", "tribunal hook stop --client codex", "then: tribunal init\n"]
    {
        assert!(said.contains(wanted), "{said}");
    }
    for (text, what) in [
        ("[]", "1:1: the file is no object"),
        ("{\"hooks\": \"none\"}", "1:11: `hooks` is no object"),
        ("{\"hooks\": {\"Stop\": {}}}", "1:20: `hooks.Stop` is no list"),
        ("{\"a\": 1,\n \"a\": 2}", "2:2: `a` stands here twice"),
        ("", "1:1: the file has no value in it"),
    ] {
        place.sandbox.write(".codex/hooks.json", text);
        let said = place.refused(&["--yes"], 2);
        assert!(said.starts_with(&format!("[!] .codex/hooks.json:{what}\n")), "{said}");
        place.refused(&["--remove", "--yes"], 2);
    }
    fs::write(place.sandbox.path(".codex/hooks.json"), b"{\"a\": \"\xe9\"}").unwrap();
    let ran = place.run(&["--yes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(!place.sandbox.path("tribunal.yaml").exists());
}

#[test]
fn our_entry_that_somebody_changed_is_theirs_to_judge() {
    let place = Place::new(&["claude", "copilot"]);
    place.good(&["--yes"]);
    let settings = place.sandbox.read(LOCAL);
    let changed =
        settings.replacen("hook stop --client claude-code", "hook stop --client claude-code; date", 1);
    place.sandbox.write(LOCAL, &changed);
    for args in [&["--yes"][..], &["--remove", "--yes"], &["--shared", "--yes"]] {
        let said = place.refused(args, 3);
        assert!(
            said.starts_with("[!] .claude/settings.local.json:6:11: Tribunal's hook of `Stop` was changed"),
            "{said}"
        );
    }
    place.sandbox.write(LOCAL, &settings);
    let own = place.sandbox.read(".github/hooks/tribunal.json");
    place.sandbox.write(".github/hooks/tribunal.json", &own.replacen("10", "99", 1));
    let said = place.refused(&["--remove", "--yes"], 3);
    assert!(said.contains("Tribunal's own file was changed"), "{said}");
}

#[test]
fn links_that_lead_out_of_the_project_are_not_followed() {
    let place = Place::new(&["claude"]);
    let outside = place.sandbox.home().with_file_name("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("settings.local.json"), "{}").unwrap();
    symlink(&outside, place.sandbox.path(".claude")).unwrap();
    let said = place.refused(&["--yes"], 2);
    assert!(said.contains("a link out of the project") && said.contains("Nothing was written."), "{said}");
    fs::remove_file(outside.join("settings.local.json")).unwrap();
    place.refused(&["--yes"], 2);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    // A link that stays inside the project is followed, as the user may keep the file elsewhere.
    fs::remove_file(place.sandbox.path(".claude")).unwrap();
    place.sandbox.write("kept/claude.json", "{}\n");
    fs::create_dir(place.sandbox.path(".claude")).unwrap();
    symlink("../kept/claude.json", place.sandbox.path(LOCAL)).unwrap();
    place.good(&["--yes"]);
    assert!(place.sandbox.path(LOCAL).is_symlink());
    assert!(place.sandbox.read("kept/claude.json").contains("tribunal hook stop"));
}

#[test]
fn a_shared_file_has_hooks_that_do_nothing_where_tribunal_is_missing() {
    let place = Place::new(&["claude"]);
    place.good(&["--yes"]);
    let ran = place.good(&["--shared", "--yes"]);
    assert!(ran.out.contains("claude-code: hooks in .claude/settings.local.json: 8 removed"), "{}", ran.out);
    assert_eq!(place.names(), [SHARED, "tribunal.yaml"], "in both they would run twice");
    for command in commands(&place, SHARED) {
        assert!(
            command.starts_with("command -v tribunal >/dev/null 2>&1 && exec tribunal hook "),
            "{command}"
        );
        let output =
            Command::new("/bin/sh").arg("-c").arg(&command).env("PATH", "/nowhere").output().unwrap();
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
    let ran = place.good(&[]);
    assert!(ran.out.contains("claude-code: hooks in .claude/settings.json: 8 there already"), "{}", ran.out);
}

#[test]
fn hooks_start_this_very_program_and_follow_it_when_it_moves() {
    let place = Place::new(&["claude"]);
    fs::remove_file(place.bin.join("tribunal")).unwrap();
    let ran = place.good(&["--yes"]);
    assert!(ran.err.contains("typing `tribunal` does not start this program"), "{}", ran.err);
    let own = Path::new(TRIBUNAL).canonicalize().unwrap();
    let first = &commands(&place, LOCAL)[0];
    assert!(first.starts_with(own.to_str().unwrap()) && first.ends_with(" --client claude-code"), "{first}");

    symlink(TRIBUNAL, place.bin.join("tribunal")).unwrap();
    let ran = place.good(&["--yes"]);
    assert!(ran.out.contains("8 brought up to date") && ran.out.contains("\n-"), "{}", ran.out);
    assert!(commands(&place, LOCAL).iter().all(|command| command.starts_with("tribunal hook ")));
}

#[test]
fn a_profile_is_for_a_new_file_and_changes_no_other() {
    for (profile, tier) in [("solo", 1), ("team", 2), ("enterprise", 4), ("quick-fix", 0)] {
        let place = Place::new(&[]);
        let document = place.json(&["--profile", profile, "--yes"]);
        assert_eq!(document["profile"], profile);
        let effective = place.sandbox.json(&["inspect", "settings"]);
        let rows = effective["settings"].as_array().unwrap();
        let found = rows.iter().find(|row| row["path"] == "tier").unwrap();
        assert_eq!(found["value"].to_string().trim_matches('"'), tier.to_string(), "{found}");
        let before = place.files();
        let ran = place.good(&["--profile", "enterprise"]);
        assert_eq!(place.files(), before);
        let wanted =
            "tribunal.yaml is there and is not changed; the profile enterprise would set in it: tier=4";
        assert!(ran.err.contains(wanted), "{}", ran.err);
    }
    assert_eq!(Place::new(&[]).run(&["--profile", "big"]).code, Some(2));
}

#[test]
fn what_git_overlooks_already_is_not_said_again() {
    let place = Place::in_git(&["claude"]);
    place.sandbox.write(".gitignore", "node_modules\r\n.*/\r\n*.local.json");
    place.good(&["--yes"]);
    assert_eq!(place.sandbox.read(".gitignore"), "node_modules\r\n.*/\r\n*.local.json");
    place.sandbox.write(".gitignore", "node_modules\r\n.tribunal");
    place.good(&["--yes"]);
    assert_eq!(
        place.sandbox.read(".gitignore"),
        "node_modules\r\n.tribunal\r\n.claude/review-loop-state.yaml\r\n"
    );
}

#[test]
fn what_keeps_a_hook_from_running_is_said() {
    let place = Place::new(&["claude", "codex"]);
    place.sandbox.write(LOCAL, "{\n  // mine\n  \"disableAllHooks\": true\n}\n");
    let ran = place.good(&["--dry-run"]);
    let lines = place.shown(&ran.err).replace(", so no hook", ",\n    so no hook");
    insta::assert_snapshot!(lines, @r"
    [W] .claude/settings.local.json:2:3: a comment: claude-code does not read a file with comments or trailing commas at all,
        so no hook in it runs
    [W] .claude/settings.local.json:3: `disableAllHooks` is on,
        so no hook runs
    [i] codex: it runs them once you have trusted this folder and each hook, and does not say so before: start codex here, then /hooks
    ");
}

#[test]
fn the_document_says_what_was_done_and_fits_its_schema() {
    let place = Place::new(&["claude", "gemini"]);
    let schema = place.sandbox.json(&["schema", "init"]);
    let fits = |document: &Value| jsonschema::validator_for(&schema).unwrap().is_valid(document);
    let document = place.json(&["--dry-run"]);
    assert!(fits(&document) && document["done"] == false, "{document}");
    let document = place.json(&["--yes"]);
    assert!(fits(&document) && document["done"] == true, "{document}");
    assert_eq!(document["schema"], "tribunal.init/1");
    assert_eq!(document["clients"][0]["added"], 8);
    assert_eq!(document["files"][0]["path"], LOCAL);
    assert_eq!(document["by_hand"][0]["file"], "~/.gemini/settings.json");
    let again = place.json(&[]);
    assert_eq!((&again["done"], &again["files"]), (&Value::Bool(false), &Value::Array(Vec::new())));
}

#[test]
fn without_a_client_the_rest_is_set_up() {
    let place = Place::new(&[]);
    let ran = place.good(&["--yes"]);
    assert_eq!(place.names(), ["tribunal.yaml"]);
    assert!(ran.err.contains("no client was found on the path"), "{}", ran.err);
    place.good(&["--client", "claude-code", "--yes"]);
    assert_eq!(place.names(), [LOCAL, "tribunal.yaml"]);
    let ran = place.run(&["--client", "cursor"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("there is no client `cursor`"), "{}", ran.err);
}
