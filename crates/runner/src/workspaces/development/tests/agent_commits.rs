//! Taking back what agents commit by themselves in the user's checkout.

use super::{super::agent_commits::agent_committer, *};

/// Commits everything as the git of an agent does it.
fn commit_as_agent(project: &UserProject, arguments: &[&str]) {
    let committer = format!("committer.email={}", agent_committer(&run_id()));
    project.git(&["add", "-A"]);
    let commit = ["-c", committer.as_str(), "commit", "-q", "-m", "by the agent"];
    project.git(&[&commit[..], arguments].concat());
}

fn status(project: &UserProject) -> String {
    project.git(&["status", "--porcelain"])
}

#[test]
fn commits_of_an_agent_are_taken_back_and_their_changes_are_the_work() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("gone.txt", "g\n"), ("kind/b.txt", "b\n")]);
    let workspace = project.open_in_place();
    let base = workspace.record.base.clone();
    project.write("a.txt", "half\n");
    project.write("new.txt", "new\n");
    fs::remove_file(project.root().join("gone.txt")).unwrap();
    fs::remove_dir_all(project.root().join("kind")).unwrap();
    project.write("kind", "now a file\n");
    commit_as_agent(&project, &[]);
    project.git(&["tag", "-m", "tagged", "v1"]);
    project.write("a.txt", "whole\n");
    commit_as_agent(&project, &[]);
    // What is staged after the commits stays staged.
    project.write("later.txt", "later\n");
    project.git(&["add", "later.txt"]);
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 2);
    assert_eq!(project.tip("HEAD"), base);
    assert_eq!(project.git(&["branch", "--show-current"]), "main");
    assert_eq!(status(&project), " M a.txt\n D gone.txt\n D kind/b.txt\nA  later.txt\n?? kind\n?? new.txt");
    assert_eq!(project.read("a.txt"), "whole\n");
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 0);
    // It lands like any other work.
    let commit = workspace.commit("work");
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["log", "--format=%s"]), "work\nfirst");
    assert_eq!(status(&project), "");
}

#[test]
fn other_commits_stay_and_so_does_what_they_rest_on() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open_in_place();
    project.write("mine.txt", "mine\n");
    let mine = project.commit_all("mine");
    project.write("a.txt", "agent\n");
    commit_as_agent(&project, &[]);
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 1);
    assert_eq!((project.tip("HEAD"), status(&project)), (mine, " M a.txt".to_string()));
    commit_as_agent(&project, &[]);
    project.write("mine.txt", "more\n");
    let more = project.commit_all("more");
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 0);
    assert_eq!(project.tip("HEAD"), more);
}

#[test]
fn a_branch_that_was_moved_in_another_way_stays() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open_in_place();
    project.write("a.txt", "agent\n");
    commit_as_agent(&project, &["--amend"]);
    let amended = project.tip("HEAD");
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 0);
    assert_eq!(project.tip("HEAD"), amended);
    // Neither does anything move that another branch has.
    project.git(&["reset", "-q", "--soft", workspace.record.base.as_str()]);
    project.git(&["switch", "-q", "-c", "side"]);
    commit_as_agent(&project, &[]);
    let side = project.tip("side");
    assert_eq!(workspace.take_back_agent_commits().unwrap(), 0);
    assert_eq!((project.tip("HEAD"), project.tip("main")), (side, workspace.record.base.clone()));
}

#[test]
fn a_process_that_ended_between_index_and_branch_is_continued() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let workspace = project.open_in_place();
    let base = workspace.record.base.clone();
    project.write("a.txt", "agent\n");
    project.write("new.txt", "new\n");
    commit_as_agent(&project, &[]);
    project.git(&["read-tree", base.as_str()]);
    assert_eq!(project.reopen().take_back_agent_commits().unwrap(), 1);
    assert_eq!((project.tip("HEAD"), status(&project)), (base, " M a.txt\n?? new.txt".to_string()));
}
