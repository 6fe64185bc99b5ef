//! Tests against real repositories, created for each test.

use std::{
    fs,
    io::Write,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
    path::PathBuf,
    process::Stdio,
};

use super::*;
use crate::git::{git, text};

struct Repo {
    folder: tempfile::TempDir,
}

impl Repo {
    fn new() -> Repo {
        let repo = Repo { folder: tempfile::tempdir().unwrap() };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = git(self.root());
        let who = [
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@e",
            "-c",
            "commit.gpgSign=false",
            "-c",
            "core.autocrlf=false",
        ];
        let output = git.args(who).args(args).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        text(&output.stdout)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
    }

    fn commit(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x", "--allow-empty"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn find(&self, asked: Asked, fix: bool) -> Result<Found, ChangeError> {
        find(self.root(), &Request { fix, ..request(asked) })
    }

    fn work_tree(&self) -> Change {
        self.find(Asked::WorkTree, true).unwrap().change
    }
}

fn request(asked: Asked) -> Request {
    Request {
        asked,
        paths: Vec::new(),
        fix: false,
        reviews: "out/reviews".into(),
        bookkeeping: Vec::new(),
        is_story: |path, text| path.ends_with(".md") && text.contains("Acceptance"),
    }
}

fn range(said: &str) -> Asked {
    Asked::Range(said.into())
}

fn files(change: &Change) -> Vec<String> {
    let shown = |file: &Changed| match &file.from {
        Some(from) => format!("{from} -> {}", file.path),
        None => file.path.clone(),
    };
    change.files.iter().map(shown).collect()
}

const LONG: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn a_range_has_its_commits_and_files_in_the_order_of_their_paths() {
    let repo = Repo::new();
    for file in ["a.rs", "gone.rs", "old.rs", "same.rs"] {
        repo.write(file, format!("// {file}\n{LONG}"));
    }
    let base = repo.commit();
    repo.write("a.rs", "changed\n");
    repo.write("z/new.rs", "new\n");
    repo.git(&["mv", "old.rs", "b.rs"]);
    repo.git(&["rm", "-q", "gone.rs"]);
    let end = repo.commit();
    let found = repo.find(range(&format!("{base}..")), false).unwrap();
    assert_eq!((found.change.base, found.change.end), (base.clone(), Some(end)));
    let found = repo.find(range("HEAD~1..HEAD"), true).unwrap();
    assert_eq!(files(&found.change), ["a.rs", "old.rs -> b.rs", "gone.rs", "z/new.rs"]);
    assert_eq!((found.change.base.as_str(), found.change.end.as_deref()), (base.as_str(), None));
    let diff = repo.git(&["diff", "-M", "HEAD~1", "HEAD"]);
    assert_eq!(found.bytes(), diff.len() as u64 + 1, "what git prints, to the byte");
}

#[test]
fn what_the_work_tree_does_not_have_can_only_be_reviewed() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    repo.write("b.rs", "1\n");
    repo.commit();
    repo.write("a.rs", "2\n");
    repo.git(&["rm", "-q", "b.rs"]);
    repo.commit();
    repo.write("other.rs", "of no concern\n");
    assert!(repo.find(range("HEAD~1..HEAD"), true).is_ok());
    repo.write("a.rs", "3\n");
    repo.write("b.rs", "1\n");
    let error = repo.find(range("HEAD~1..HEAD"), true).unwrap_err();
    assert_eq!(error.to_string(), "the work tree has something else than HEAD~1..HEAD in a.rs, b.rs");
    assert!(repo.find(range("HEAD~1..HEAD"), false).unwrap().change.end.is_some());
}

#[test]
fn line_ends_that_git_converts_are_no_difference() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write("a.txt", "1\n");
    repo.commit();
    repo.write("a.txt", "1\n2\n");
    repo.commit();
    repo.write("a.txt", "1\r\n2\r\n");
    assert_eq!(repo.find(range("HEAD~1..HEAD"), true).unwrap().change.end, None);
}

#[test]
fn three_dots_start_where_the_two_parted() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    let base = repo.commit();
    repo.git(&["switch", "-q", "-c", "topic"]);
    repo.write("topic.rs", "1\n");
    repo.commit();
    repo.git(&["switch", "-q", "main"]);
    repo.write("main.rs", "another\n");
    repo.commit();
    let change = repo.find(range("main...topic"), false).unwrap().change;
    assert_eq!((change.base.as_str(), files(&change)), (base.as_str(), vec!["topic.rs".to_string()]));
    let change = repo.find(range("main..topic"), false).unwrap().change;
    assert_eq!(files(&change), ["main.rs", "topic.rs"]);
}

#[test]
fn the_work_tree_has_new_files_and_none_that_are_ignored() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.log\n");
    repo.write("a.rs", "1\n");
    let base = repo.commit();
    repo.write("a.rs", "2\n");
    repo.write("new dir/neu ü.rs", "1\n");
    repo.write("x.log", "1\n");
    let change = repo.work_tree();
    assert_eq!((change.base.as_str(), &change.end), (base.as_str(), &None));
    assert_eq!(files(&change), ["a.rs", "new dir/neu ü.rs"]);
    assert_eq!(change.range, "work tree");
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    repo.write("b.rs", "1\n");
    repo.git(&["add", "a.rs"]);
    let change = repo.work_tree();
    assert_eq!((change.base.as_str(), files(&change)), ("", vec!["a.rs".to_string(), "b.rs".into()]));
    let staged = repo.find(Asked::Staged, false).unwrap().change;
    assert_eq!((staged.base.as_str(), files(&staged)), ("", vec!["a.rs".to_string()]));
}

#[test]
fn what_is_staged_is_a_tree_and_the_index_stays_as_it_is() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    repo.commit();
    repo.write("a.rs", "staged\n");
    repo.git(&["add", "a.rs"]);
    let index = fs::read(repo.path(".git/index")).unwrap();
    assert_eq!(repo.find(Asked::Staged, true).unwrap().change.end, None, "it is what the work tree has");
    repo.write("a.rs", "staged, and more\n");
    let end = repo.find(Asked::Staged, false).unwrap().change.end.unwrap();
    assert_eq!(repo.git(&["cat-file", "-p", &format!("{end}:a.rs")]), "staged");
    assert!(matches!(repo.find(Asked::Staged, true), Err(ChangeError::Differs { .. })));
    assert!(fs::read(repo.path(".git/index")).unwrap() == index, "somebody wrote the person's index");
    assert!(!repo.path(".git/index.lock").exists());
}

#[test]
fn a_commit_is_compared_with_its_first_parent() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    let first = repo.commit();
    repo.write("b.rs", "1\n");
    let second = repo.commit();
    let change = repo.find(Asked::Commit("HEAD".into()), false).unwrap().change;
    assert_eq!((change.base, change.end), (first.clone(), Some(second)));
    let change = repo.find(Asked::Commit(first), false).unwrap().change;
    assert_eq!((change.base.as_str(), files(&change)), ("", vec!["a.rs".to_string()]));
}

#[test]
fn a_story_s_change_is_what_came_since_its_start_without_the_plans() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    let start = repo.commit();
    repo.write("a.rs", "2\n");
    repo.write("plans/1-1-a.md", "1\n");
    repo.commit();
    repo.write("b.rs", "1\n");
    repo.write("plans/board.yaml", "1\n");
    let asked = Asked::Since(start.clone());
    let bookkeeping = vec!["plans".to_string()];
    let change = find(repo.root(), &Request { bookkeeping, ..request(asked) }).unwrap().change;
    assert_eq!((change.base, change.end), (start, None));
    assert_eq!(files(&repo.find(Asked::WorkTree, true).unwrap().change), ["b.rs", "plans/board.yaml"]);
    assert_eq!(change.left_out, ["plans/1-1-a.md: of those who plan the work, as 1 more"]);
    let paths: Vec<String> = change.files.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["a.rs", "b.rs"]);
    assert!(matches!(repo.find(Asked::Since("gone".into()), true), Err(ChangeError::Unknown { .. })));
}

#[test]
fn what_a_shallow_clone_does_not_have_is_said() {
    let repo = Repo::new();
    for n in 0..3 {
        repo.write("a.rs", format!("{n}\n"));
        repo.commit();
    }
    let clone = Repo { folder: tempfile::tempdir().unwrap() };
    let from = format!("file://{}", repo.root().display());
    // Not through our own git command, which never fetches.
    let made = std::process::Command::new("git")
        .args(["clone", "-q", "--depth=1", &from, "."])
        .current_dir(clone.root())
        .status()
        .unwrap();
    assert!(made.success());
    assert!(matches!(clone.find(Asked::Commit("HEAD".into()), true), Err(ChangeError::Shallow { .. })));
    assert!(
        matches!(clone.find(range("HEAD~1..HEAD"), true), Err(ChangeError::Unknown { said }) if said == "HEAD~1")
    );
    clone.git(&["checkout", "-q", "--orphan", "other"]);
    clone.commit();
    assert!(matches!(
        clone.find(range("main...other"), true),
        Err(ChangeError::Unrelated { shallow: true, .. })
    ));
}

#[test]
fn what_nobody_can_review_is_left_out_with_the_reason() {
    let repo = Repo::new();
    repo.write("tool.sh", "1\n");
    repo.write("a.rs", "1\n");
    repo.write("was-text", "1\n");
    let head = repo.commit();
    repo.write("a.rs", "2\n");
    repo.write("binary.png", b"\x89PNG\0\0");
    repo.write("latin1.txt", b"gr\xfc\xdfe\n");
    repo.write("big.txt", "0123456789\n".repeat(100_000));
    repo.write("model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    repo.write("node_modules/x.js", "1\n");
    repo.write("was-text", b"now\0binary");
    repo.write("generated.sql", "insert into t values (1);\n".repeat(12_000));
    repo.write("out/reviews/plan-issues.md", "x\n");
    repo.write("out/reviews/review-metrics-1.json", "{}\n");
    repo.write("out/awaiting-human/R.D1.yaml", "x\n");
    std::os::unix::fs::symlink("a.rs", repo.path("link")).unwrap();
    fs::set_permissions(repo.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(repo.root().join(std::ffi::OsString::from_vec(b"caf\xe9.txt".to_vec())), "1\n").unwrap();
    repo.write("line\nend.txt", "1\n");
    let expected = [
        "big.txt: 1.0 MB, at most 1.0 MB are reviewed",
        "binary.png: binary",
        "caf\u{fffd}.txt\u{fffd}: its name is no UTF-8",
        "generated.sql: 305 KB of diff, at most 256 KB are reviewed with others; alone: tribunal review FILE",
        "latin1.txt: it is no UTF-8",
        "line\nend.txt: its name has control characters",
        "link: a symbolic link",
        "model.bin: a pointer to a file in LFS",
        "node_modules/x.js: no copy has what is in node_modules",
        "out/awaiting-human/R.D1.yaml: Tribunal's own, as 2 more",
        "tool.sh: only its mode changed",
        "was-text: binary, or marked so in .gitattributes",
    ];
    let new = repo.work_tree();
    assert_eq!(files(&new), ["a.rs"]);
    assert_eq!(new.left_out, expected);
    repo.git(&["add", "-A"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendored")]);
    let staged = repo.find(Asked::Staged, false).unwrap().change;
    assert_eq!(files(&staged), ["a.rs"]);
    let mut expected: Vec<String> = expected.map(String::from).to_vec();
    expected.push("vendored: a submodule".into());
    expected[1].push_str(", or marked so in .gitattributes");
    expected[3] = expected[3].replace("305 KB", "317 KB");
    expected.sort();
    assert_eq!(staged.left_out, expected);
}

#[test]
fn a_change_of_nothing_that_can_be_reviewed_is_refused_with_the_reasons() {
    let repo = Repo::new();
    repo.write("a.png", b"\0");
    let error = repo.find(Asked::WorkTree, true).unwrap_err();
    assert!(
        matches!(&error, ChangeError::AllLeftOut { reasons, .. } if *reasons == ["a.png: binary"]),
        "{error}"
    );
    repo.commit();
    assert!(matches!(repo.find(Asked::WorkTree, true), Err(ChangeError::Nothing { .. })));
}

#[test]
fn paths_are_taken_as_they_are_and_the_project_may_be_a_part_of_the_repository() {
    let repo = Repo::new();
    for path in ["app/a*.rs", "app/ab.rs", "app/:(top)x/y.rs", "lib/c.rs"] {
        repo.write(path, "1\n");
    }
    let only = |root: &Path, paths: &[&str]| {
        let paths = paths.iter().map(ToString::to_string).collect();
        let change = find(root, &Request { paths, ..request(Asked::WorkTree) }).unwrap().change;
        (change.range.clone(), files(&change))
    };
    let star = ("work tree in a*.rs".to_string(), vec!["a*.rs".to_string()]);
    assert_eq!(only(&repo.path("app"), &["a*.rs"]), star);
    assert_eq!(only(&repo.path("app"), &[":(top)x"]).1, [":(top)x/y.rs"]);
    assert_eq!(only(&repo.path("app"), &[]).1, [":(top)x/y.rs", "a*.rs", "ab.rs"]);
    repo.git(&["add", "-A"]);
    assert_eq!(only(&repo.path("app"), &[]).1, [":(top)x/y.rs", "a*.rs", "ab.rs"]);
    assert_eq!(only(repo.root(), &["lib", "app/ab.rs"]).1, ["app/ab.rs", "lib/c.rs"]);
}

#[test]
fn conflicts_and_slips_are_named() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    repo.commit();
    repo.git(&["switch", "-q", "-c", "topic"]);
    repo.write("a.rs", "topic\n");
    repo.commit();
    repo.git(&["switch", "-q", "main"]);
    repo.write("a.rs", "main\n");
    repo.commit();
    let says = |asked: Asked| repo.find(asked, true).unwrap_err().to_string();
    assert_eq!(says(range("main..tpoic")), "there is no revision `tpoic` in this repository");
    assert_eq!(says(range("main")), "`main` is no range");
    assert_eq!(says(range("--output=x..main")), "there is no revision `--output=x` in this repository");
    let merge =
        git(repo.root()).args(["-c", "user.name=n", "-c", "user.email=e@e", "merge", "-q", "topic"]).output();
    assert!(!merge.unwrap().status.success(), "it conflicts");
    assert_eq!(says(Asked::WorkTree), "a.rs has merge conflicts that are not resolved");
    assert_eq!(says(Asked::Staged), "a.rs has merge conflicts that are not resolved");
}

#[test]
fn stories_are_pointed_out_wherever_their_text_is() {
    let repo = Repo::new();
    repo.write("a.rs", "1\n");
    repo.write("s/1-1-in.md", "## Acceptance\n");
    repo.write("s/other.md", "# x\n");
    assert_eq!(repo.find(Asked::WorkTree, true).unwrap().stories, ["s/1-1-in.md"]);
    repo.commit();
    assert_eq!(repo.find(Asked::Commit("HEAD".into()), true).unwrap().stories, ["s/1-1-in.md"]);
    repo.git(&["rm", "-q", "s/1-1-in.md"]);
    repo.write("a.rs", "2\n");
    assert_eq!(
        repo.find(Asked::WorkTree, true).unwrap().stories,
        Vec::<String>::new(),
        "a story that is gone asks for nothing"
    );
}

/// Creates a commit with this many small files in one process.
fn import(repo: &Repo, count: usize) {
    let mut command = git(repo.root());
    let mut child = command.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(child.stdin.take().unwrap());
    for (mark, files) in [(1, 0), (2, count)] {
        writeln!(input, "commit refs/heads/main\nmark :{mark}\ncommitter n <e@e> {mark} +0000\ndata 1\nx")
            .unwrap();
        for n in 0..files {
            let text = format!("fn f{n}() {{}}\n");
            let path = format!("src/m{}/d{}/f{n}.rs", n % 7, n % 50);
            writeln!(input, "M 100644 inline {path}\ndata {}\n{text}", text.len()).unwrap();
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ten_thousand_files_are_refused_with_figures_and_folders() {
    let repo = Repo::new();
    import(&repo, 10_000);
    let error = repo.find(range("main~1..main"), false).unwrap_err();
    let ChangeError::TooBig { files, folders, .. } = &error else { panic!("{error}") };
    assert_eq!((*files, folders.len(), folders[0].0.as_str()), (10_000, 5, "src/m0/"));
    assert_eq!(error.to_string(), "main~1..main is too big for one review: 10000 files");
}

#[test]
fn fifteen_hundred_files_are_parts_by_folder() {
    let repo = Repo::new();
    import(&repo, 1_500);
    let parts = repo.find(range("main~1..main"), false).unwrap().parts().unwrap();
    assert_eq!(parts.iter().map(|part| part.change.files.len()).sum::<usize>(), 1_500);
    assert!(parts.len() <= MOST_PARTS, "{}", parts.len());
    assert!(parts.iter().all(|part| part.change.files.len() <= MOST_FILES && part.bytes > 0));
}

#[test]
fn a_file_of_a_hundred_megabytes_is_left_out_by_its_size() {
    let repo = Repo::new();
    repo.write("dump.sql", "1\n");
    repo.write("a.rs", "1\n");
    repo.commit();
    repo.write("a.rs", "2\n");
    for name in ["dump.sql", "new.sql"] {
        fs::File::create(repo.path(name)).unwrap().set_len(100 << 20).unwrap();
    }
    let change = repo.work_tree();
    assert_eq!(files(&change), ["a.rs"]);
    let size = "100.0 MB, at most 1.0 MB are reviewed";
    assert_eq!(change.left_out, [format!("dump.sql: {size}"), format!("new.sql: {size}")]);
}

#[test]
fn what_git_was_told_not_to_look_at_is_not_taken_for_what_was_committed() {
    for hide in ["--skip-worktree", "--assume-unchanged"] {
        let repo = Repo::new();
        repo.write("a.txt", "one\n");
        repo.commit();
        repo.write("a.txt", "two\n");
        repo.commit();
        repo.git(&["update-index", hide, "a.txt"]);
        repo.write("a.txt", "nobody's business\n");
        let found = repo.find(Asked::Commit("HEAD".into()), true);
        assert!(matches!(found, Err(ChangeError::Differs { .. })), "{hide}: {found:?}");
        assert!(repo.find(Asked::Commit("HEAD".into()), false).is_ok());
    }
    // A sparse checkout has no such file.
    let repo = Repo::new();
    repo.write("in/i.txt", "1\n");
    repo.write("out/o.txt", "1\n");
    repo.commit();
    repo.write("out/o.txt", "2\n");
    repo.commit();
    repo.git(&["sparse-checkout", "set", "in"]);
    let found = repo.find(Asked::Commit("HEAD".into()), true);
    assert!(matches!(found, Err(ChangeError::Differs { .. })), "{found:?}");
}
