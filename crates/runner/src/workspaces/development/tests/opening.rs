//! Opening workspaces of all kinds of repositories.

use crate::workspaces::development::commits::CommitForm;
use std::os::unix::{ffi::OsStrExt, fs::symlink};

use super::*;

fn message_of(result: Result<UnfinishedWorkspace, WorkspaceError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_clone_has_the_files_of_the_branch_and_a_repository_of_its_own() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("run.sh", "x\n"), ("dir/b.txt", "b\n")]);
    make_executable(&project.root().join("run.sh"));
    symlink("a.txt", project.root().join("link")).unwrap();
    let odd_name = std::ffi::OsStr::from_bytes(b"odd-\xff\n name");
    fs::write(project.root().join(odd_name), "odd").unwrap();
    let base = project.commit_all("second");
    // What the user has not committed is not part of the work.
    project.write("a.txt", "mine\n");
    project.write("new.txt", "mine\n");
    let workspace = project.open();
    assert_eq!(workspace.record.base, base);
    assert_eq!(workspace.read("a.txt"), "a\n");
    assert_eq!(workspace.read("dir/b.txt"), "b\n");
    assert_eq!(fs::read_link(workspace.record.tree.join("link")).unwrap(), Path::new("a.txt"));
    assert_eq!(fs::metadata(workspace.record.tree.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read(workspace.record.tree.join(odd_name)).unwrap(), b"odd");
    assert!(!workspace.record.tree.join("new.txt").exists());
    assert_eq!(workspace.changes(), [""; 0]);
    assert_eq!(workspace.record.remarks, [""; 0]);
    // The agent's own git works, and nothing of it reaches the user's repository.
    let tree = &workspace.record.tree;
    assert_eq!(project.git_in(tree, &["status", "--porcelain"]), "");
    assert_eq!(project.git_in(tree, &["branch", "--show-current"]), "main");
    assert_eq!(project.git_in(tree, &["log", "--format=%s"]), "second\nfirst");
    assert_eq!(project.git_in(tree, &["remote"]), "");
    workspace.write("a.txt", "agent\n");
    project.git_in(tree, &["commit", "-qam", "by the agent"]);
    assert_eq!(project.tip("main"), base);
    assert_eq!(workspace.changes(), ["modified a.txt"]);
    let mode = fs::metadata(workspace.directory.clone()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(project.read("a.txt"), "mine\n");
}

#[test]
fn a_project_below_the_root_of_its_repository_is_where_agents_work() {
    let mut project = UserProject::with_files(&[("app/a.txt", "a\n"), ("b.txt", "b\n")]);
    project.root_name = "project/app";
    let workspace = project.open();
    assert_eq!(workspace.read("a.txt"), "a\n");
    workspace.write("a.txt", "agent\n");
    workspace.write("../b.txt", "agent\n");
    assert_eq!(workspace.changes(), ["modified ../b.txt", "modified a.txt"]);
}

#[test]
fn unusable_repositories_are_refused_with_advice() {
    let project = UserProject::new("project");
    assert!(message_of(project.create(DevelopmentPlace::Clone, &main_branch())).contains("`git init`"));
    project.git(&["init", "-q", "-b", "main"]);
    assert!(message_of(project.create(DevelopmentPlace::Clone, &main_branch())).contains("make a first commit"));
    project.write("a.txt", "a\n");
    let base = project.commit_all("first");
    let missing = TargetBranch { name: "none".into(), created_at: None };
    assert_eq!(message_of(project.create(DevelopmentPlace::Clone, &missing)), "there is no branch `none`");
    let new_branch = TargetBranch { name: "new".into(), created_at: Some(base.clone()) };
    assert_eq!(
        project.create(DevelopmentPlace::Clone, &new_branch).unwrap().mark_complete().unwrap().record.base,
        base
    );
    project.git(&["checkout", "-q", "--detach"]);
    // A detached HEAD is no obstacle for a clone of a branch.
    project.open();
    assert!(message_of(project.create(DevelopmentPlace::InPlace, &main_branch())).contains("HEAD is detached"));
    let bare = UserProject::new("bare");
    bare.git(&["init", "-q", "--bare"]);
    assert!(message_of(bare.create(DevelopmentPlace::Clone, &main_branch())).contains("bare"));
}

#[test]
fn an_unfinished_workspace_is_made_again_and_a_complete_one_is_found() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let unfinished = project.create(DevelopmentPlace::Clone, &main_branch()).unwrap();
    write_file(&unfinished.as_workspace().record.tree.join("half"), "x");
    drop(unfinished);
    assert!(project.home().find_workspace(&run_id(), "dev").unwrap().is_none());
    let workspace = project.open();
    assert!(!workspace.record.tree.join("half").exists());
    workspace.write("a.txt", "agent\n");
    let state = workspace.state();
    assert_eq!(project.reopen().state(), state);
    // Closing removes everything, also twice, and also directories that cannot be written to.
    fs::create_dir(workspace.record.tree.join("locked")).unwrap();
    write_file(&workspace.record.tree.join("locked/x"), "x");
    fs::set_permissions(workspace.record.tree.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    for _ in 0..2 {
        super::super::close_workspace(&project.home(), &run_id(), "dev").unwrap();
        assert!(!workspace.directory.exists());
        assert_eq!(project.git(&["for-each-ref", "refs/tribunal"]), "");
    }
}

#[test]
fn linked_work_trees_shallow_clones_and_borrowed_objects_are_followed() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    project.write("a.txt", "b\n");
    project.commit_all("second");
    let origin = format!("file://{}", project.root().display());
    // A linked work tree.
    project.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let side = TargetBranch { name: "side".into(), created_at: None };
    let linked = UserProject { root_name: "linked", ..project };
    let workspace = linked.create(DevelopmentPlace::Clone, &side).unwrap().mark_complete().unwrap();
    assert_eq!(workspace.read("a.txt"), "b\n");
    // A shallow clone.
    linked.git_in(linked.temp_dir.path(), &["clone", "-q", "--depth=1", "-b", "main", &origin, "shallow"]);
    let shallow = UserProject { root_name: "shallow", ..linked };
    let workspace = shallow.open();
    assert_eq!(shallow.git_in(&workspace.record.tree, &["log", "--format=%s"]), "second");
    workspace.write("a.txt", "c\n");
    workspace.commit("on a shallow clone");
    // A clone that borrows from a clone that borrows.
    for (source, target) in [("project", "first"), ("first", "second")] {
        shallow.git_in(shallow.temp_dir.path(), &["clone", "-q", "-s", "-b", "main", source, target]);
    }
    let borrowing = UserProject { root_name: "second", ..shallow };
    let workspace = borrowing.open();
    assert_eq!((workspace.read("a.txt"), workspace.changes().len()), ("b\n".to_string(), 0));
}

#[test]
fn sparse_checkouts_stay_sparse() {
    for cone in ["--cone", "--no-cone"] {
        let project = UserProject::with_files(&[("in/a.txt", "a\n"), ("out/b.txt", "b\n"), ("c.txt", "c\n")]);
        project.git(&["sparse-checkout", "set", cone, "in"]);
        let workspace = project.open();
        assert!(workspace.record.tree.join("in/a.txt").exists());
        assert!(!workspace.record.tree.join("out/b.txt").exists(), "{cone}");
        assert_eq!(workspace.changes(), [""; 0]);
        assert_eq!(project.git_in(&workspace.record.tree, &["status", "--porcelain"]), "");
        workspace.write("in/a.txt", "agent\n");
        workspace.write("out/new.txt", "agent\n");
        assert_eq!(workspace.changes(), ["modified in/a.txt", "added out/new.txt"]);
        let committed = workspace.commit("work");
        let listed = project.git(&["ls-tree", "-r", "--name-only", committed.as_str()]);
        assert_eq!(listed, "c.txt\nin/a.txt\nout/b.txt\nout/new.txt");
    }
}

#[test]
fn files_of_submodules_are_copied_and_changes_in_them_are_not_taken() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let library = UserProject { root_name: "library", ..project };
    fs::create_dir(library.root()).unwrap();
    library.git(&["init", "-q", "-b", "main"]);
    library.write("lib.txt", "lib\n");
    library.commit_all("library");
    let project = UserProject { root_name: "project", ..library };
    project.git(&["submodule", "--quiet", "add", "../library", "lib"]);
    project.commit_all("with a submodule");
    let workspace = project.open();
    assert_eq!(workspace.read("lib/lib.txt"), "lib\n");
    assert!(!workspace.record.tree.join("lib/.git").exists());
    assert!(workspace.record.remarks[0].contains("`lib`"), "{:?}", workspace.record.remarks);
    workspace.write("lib/lib.txt", "agent\n");
    workspace.write("lib/new.txt", "agent\n");
    assert_eq!(workspace.changes(), [""; 0]);
    workspace.write("a.txt", "agent\n");
    let committed = workspace.commit("work");
    let old_link = project.git(&["rev-parse", "main:lib"]);
    assert_eq!(project.git(&["rev-parse", &format!("{committed}:lib")]), old_link);
}

#[test]
fn line_ends_are_those_of_the_checkout() {
    let project = UserProject::with_files(&[(".gitattributes", "*.txt text\n"), ("a.txt", "1\n2\n")]);
    project.git(&["config", "core.autocrlf", "true"]);
    let workspace = project.open();
    assert_eq!(workspace.read("a.txt"), "1\r\n2\r\n");
    assert_eq!(workspace.changes(), [""; 0]);
    let fingerprint = workspace.state().fingerprint;
    // Other line ends of the same text are no change.
    workspace.write("a.txt", "1\n2\n");
    assert_eq!((workspace.changes().len(), workspace.state().fingerprint), (0, fingerprint));
    workspace.write("a.txt", "1\r\n3\r\n");
    let committed = workspace.commit("work");
    assert_eq!(project.git(&["cat-file", "blob", &format!("{committed}:a.txt")]), "1\n3");
}

/// A filter that stores texts in capital letters.
const UPPER_FILTER: &str = "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n";

#[test]
fn a_filter_of_the_user_is_not_needed_for_unchanged_files_and_runs_for_changed_ones() {
    let project = UserProject::with_files(&[(".gitattributes", "*.up filter=upper\n")]);
    project.add_global_config(UPPER_FILTER);
    project.write("a.up", "text\n");
    project.write("b.up", "text\n");
    project.commit_all("filtered");
    assert_eq!(project.git(&["cat-file", "blob", "main:a.up"]), "TEXT");
    // The smudge filter may be out of order: only files that the user has changed need it.
    let config_file = project.temp_dir.path().join("gitconfig");
    let working_config = fs::read_to_string(&config_file).unwrap();
    fs::write(&config_file, working_config.replace("tr A-Z a-z", "false")).unwrap();
    let workspace = project.open();
    assert_eq!((workspace.read("a.up"), workspace.changes().len()), ("text\n".to_string(), 0));
    assert_eq!(workspace.record.remarks, [""; 0]);
    fs::write(&config_file, &working_config).unwrap();
    project.write("b.up", "mine\n");
    let workspace = project.open();
    assert_eq!((workspace.read("b.up"), workspace.changes().len()), ("text\n".to_string(), 0));
    workspace.write("a.up", "agent\n");
    let committed = workspace.commit("work");
    assert_eq!(project.git(&["cat-file", "blob", &format!("{committed}:a.up")]), "AGENT");
}

#[test]
fn a_filter_of_the_repository_never_runs_and_a_changed_file_of_it_is_refused() {
    let project = UserProject::with_files(&[(".gitattributes", "*.up filter=upper\n"), ("b.txt", "b\n")]);
    for (key, value) in [("clean", "tr a-z A-Z; touch ran"), ("smudge", "tr A-Z a-z; touch ran"), ("required", "true")]
    {
        project.git(&["config", &format!("filter.upper.{key}"), value]);
    }
    project.write("a.up", "text\n");
    // Git reads a file again if it is as new as the index, and would need the filter for that.
    let old_time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(project.root().join("a.up")).unwrap().set_modified(old_time).unwrap();
    project.commit_all("filtered");
    assert_eq!(project.git(&["cat-file", "blob", "main:a.up"]), "TEXT");
    fs::remove_file(project.root().join("ran")).unwrap();
    let workspace = project.open();
    assert_eq!((workspace.read("a.up"), workspace.changes().len()), ("text\n".to_string(), 0));
    workspace.write("b.txt", "agent\n");
    let committed = workspace.commit("work");
    assert_eq!(project.git(&["cat-file", "blob", &format!("{committed}:a.up")]), "TEXT");
    workspace.write("a.up", "agent\n");
    assert_eq!(workspace.changes(), ["modified a.up", "modified b.txt"]);
    let refusal = workspace
        .prepare_commit(&workspace.freeze_content(&Masker::new([])).unwrap().tree, "x", CommitForm::Added)
        .unwrap_err()
        .to_string();
    assert!(refusal.starts_with("a.up was changed"), "{refusal}");
    assert!(!project.root().join("ran").exists() && !workspace.record.tree.join("ran").exists());
}

#[test]
fn ignored_files_that_are_needed_are_seeded_and_never_committed() {
    let mut project = UserProject::with_files(&[
        (".gitignore", "_bmad/\nCLAUDE.md\n.env*\nnode_modules/\nconf/*.local\n"),
        ("conf/tracked", "base\n"),
    ]);
    for (path, text) in [
        ("_bmad/agent.md", "agent"),
        ("CLAUDE.md", "rules"),
        (".env.test", "KEY=1"),
        (".env", "KEY=2"),
        ("conf/a.local", "local"),
        ("node_modules/x/index.js", "x"),
    ] {
        project.write(path, text);
    }
    project.write("conf/tracked", "mine\n");
    symlink(project.root().join("conf"), project.root().join("_bmad/back")).unwrap();
    symlink("agent.md", project.root().join("_bmad/good")).unwrap();
    project.named_seeds = [".env.test", "conf", "missing", "../outside", ".git"].map(String::from).to_vec();
    let workspace = project.open();
    assert_eq!(workspace.read("_bmad/good"), "agent");
    assert_eq!(workspace.read("CLAUDE.md"), "rules");
    assert_eq!(workspace.read(".env.test"), "KEY=1");
    assert_eq!((workspace.read("conf/a.local"), workspace.read("conf/tracked")), ("local".into(), "base\n".into()));
    for absent in [".env", "node_modules", "_bmad/back"] {
        assert!(!workspace.record.tree.join(absent).exists(), "{absent}");
    }
    let remarks = workspace.record.remarks.join("\n");
    for remark in ["`missing`", "`../outside`", "`.git`", "`_bmad/back`"] {
        assert!(remarks.contains(remark), "{remark} in {remarks}");
    }
    // Also without the patterns that ignored them.
    workspace.write(".gitignore", "");
    workspace.write("_bmad/agent.md", "changed by the agent");
    assert_eq!(workspace.changes(), ["modified .gitignore"]);
    assert_eq!(project.git_in(&workspace.record.tree, &["status", "--porcelain"]), " M .gitignore");
    assert_eq!(project.read("_bmad/agent.md"), "agent");
}

#[test]
fn work_in_the_checkout_needs_a_clean_checkout_of_the_branch() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("docs/reviews/old.md", "x\n")]);
    let open = || project.create(DevelopmentPlace::InPlace, &main_branch());
    project.write("docs/reports/quarter.md", "mine\n");
    assert!(message_of(open()).contains("(docs/reports/quarter.md)"), "only reports of Tribunal are its own");
    std::fs::remove_file(project.root().join("docs/reports/quarter.md")).unwrap();
    project.write("a.txt", "mine\n");
    project.write("new.txt", "mine\n");
    assert!(message_of(open()).contains("(a.txt, new.txt)"));
    assert!(matches!(open(), Err(WorkspaceError::CheckoutNotReady { .. })), "the run waits for the user");
    project.git(&["add", "-A"]);
    assert!(message_of(open()).contains("(a.txt, new.txt)"));
    project.git(&["reset", "-q", "--hard"]);
    let side = TargetBranch { name: "side".into(), created_at: Some(project.tip("main")) };
    assert!(message_of(project.create(DevelopmentPlace::InPlace, &side)).contains("git switch side"));
    // Tribunal's own files are no obstacle, and no part of the work.
    project.write("docs/reviews/old.md", "tracker\n");
    project.write("docs/reports/tribunal-sprint-1.md", "report\n");
    project.write(".tribunal/x", "x");
    let workspace = project.open_in_place();
    assert_eq!(workspace.agent_dir(), project.root());
    assert_eq!(workspace.changes(), [""; 0]);
    project.write("a.txt", "agent\n");
    assert_eq!(project.reopen().changes(), ["modified a.txt"]);
    super::super::close_workspace(&project.home(), &run_id(), "dev").unwrap();
    assert!(project.root().join("a.txt").exists() && !workspace.directory.exists());
}
