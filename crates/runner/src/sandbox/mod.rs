//! Decides what the kernel lets each process do, from the settings and from what the process is for.
//!
//! | who | may write |
//! | --- | --- |
//! | reviewers, challengers | the session files of their client |
//! | fixers | their workspace, and the same |
//! | developers | their workspace, the same, and the caches of package managers |
//! | checks, commit hooks, commands that prepare a workspace | that workspace, and the caches |
//! | notices | nothing; without a restriction if no file of the project can be a part of them |
//!
//! Everyone has a private directory for temporary files.

mod client_files;
mod package_caches;
mod private_tmp;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tribunal_agents::{clients::AgentClient, driver::LaunchEnv};
use tribunal_engine::{
    ids::RunId,
    sandbox::{NetworkScope, ReadScope, SandboxMode, SandboxSettings},
};
use tribunal_supervise::{NetworkRule, ProcessCommand, SandboxRules, SandboxSupport};
use tribunal_workflows::tasks::purpose::AgentAccess;

use crate::project::Project;

use client_files::prepare_client_files;
pub(crate) use client_files::remove_session_dirs;
pub(crate) use private_tmp::{PrivateTmp, SpareTmp, remove_leftover_dirs};

/// Directories of the system that every program needs to read.
const SYSTEM_DIRS: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/lib",
    "/var/cache",
];

/// Directories below the home directory in which managers of toolchains keep programs.
const TOOL_DIRS: [&str; 14] = [
    ".rustup",
    ".pyenv",
    ".nvm",
    ".nodenv",
    ".volta",
    ".fnm",
    ".rbenv",
    ".rvm",
    ".sdkman",
    ".asdf",
    ".local/share/mise",
    ".local/bin",
    ".local/lib",
    ".local/share/uv",
];

/// What a process is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SandboxPurpose<'a> {
    Agent {
        access: AgentAccess,
        /// The directory that belongs to the agent.
        workspace: &'a Path,
        /// Our directory with the files that the agent is pointed at.
        scratch_dir: &'a Path,
        client: Option<AgentClient>,
    },
    /// A command of the user that may run what agents have changed: a check, a commit hook, the setup of a workspace, a notice. The paths
    /// are its workspace and, for hooks, our git directory.
    Check { writable_paths: &'a [PathBuf] },
}

impl SandboxPurpose<'_> {
    fn uses_package_caches(self) -> bool {
        match self {
            SandboxPurpose::Agent { access, .. } => access >= AgentAccess::Develop,
            SandboxPurpose::Check { .. } => true,
        }
    }
}

/// Whether processes are restricted: the settings ask for it, and the kernel can do it.
pub fn is_enforced(settings: &SandboxSettings, support: SandboxSupport) -> bool {
    settings.mode != SandboxMode::Off && support.is_available()
}

/// What a run says about its sandbox in the beginning.
pub fn describe_sandbox(settings: &SandboxSettings, support: SandboxSupport) -> String {
    if settings.mode == SandboxMode::Off {
        return "no sandbox: `sandbox.mode` is off, so agents can write wherever you can".to_string();
    }
    if !support.is_available() {
        return format!("no sandbox: {support}; agents can write wherever you can");
    }
    format!("agents write only in their workspaces (sandbox: {support})")
}

/// Whether agents can write in the project: they have no sandbox, or the settings let them write there.
pub fn can_write_project(settings: &SandboxSettings, support: SandboxSupport, place: &ProjectPlace<'_>) -> bool {
    let real_path = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let project_root = real_path(place.root.to_path_buf());
    let mut writable_paths = settings.write.iter().map(|path_text| real_path(place.resolve_path(path_text)));
    !is_enforced(settings, support)
        || writable_paths.any(|writable| project_root.starts_with(&writable) || writable.starts_with(&project_root))
}

/// Where a project is; paths in settings are relative to it, or to the user's home directory.
#[derive(Clone, Copy, Debug)]
pub struct ProjectPlace<'a> {
    pub root: &'a Path,
    pub home: Option<&'a Path>,
}

impl ProjectPlace<'_> {
    /// Resolves a path of the settings.
    fn resolve_path(&self, path_text: &str) -> PathBuf {
        match (path_text.strip_prefix("~/"), self.home) {
            (Some(below_home), Some(home_dir)) => home_dir.join(below_home),
            _ if path_text == "~" => self.home.map(Path::to_path_buf).unwrap_or_default(),
            _ => self.root.join(path_text),
        }
    }
}

/// Lists what the kernel cannot enforce although the settings ask for it.
pub fn list_gaps(settings: &SandboxSettings, support: SandboxSupport) -> Vec<&'static str> {
    if !is_enforced(settings, support) {
        return Vec::new();
    }
    // Either one that is restricted needs the kernel's help.
    let scope = if settings.network == NetworkScope::All { &settings.check_network } else { &settings.network };
    support.list_gaps(&network_rule(scope))
}

fn network_rule(scope: &NetworkScope) -> NetworkRule {
    match scope {
        NetworkScope::All => NetworkRule::Everything,
        NetworkScope::None => NetworkRule::Nothing,
        NetworkScope::Ports(ports) => NetworkRule::Ports(ports.clone()),
    }
}

/// What the rules for the processes of a run depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SandboxPolicy<'a> {
    pub settings: &'a SandboxSettings,
    pub support: SandboxSupport,
    pub launch_env: &'a LaunchEnv,
    pub project: &'a Project,
    pub run_id: &'a RunId,
    pub spare_tmp: &'a Arc<SpareTmp>,
}

impl SandboxPolicy<'_> {
    /// Whether processes of this run are restricted.
    pub fn is_enforced(&self) -> bool {
        is_enforced(self.settings, self.support)
    }

    /// Restricts a command, and gives it a private directory for temporary files, which lasts as long as the result.
    pub fn restrict_command(
        &self,
        command: &mut ProcessCommand,
        purpose: SandboxPurpose<'_>,
    ) -> io::Result<Option<PrivateTmp>> {
        if !self.is_enforced() || command.keeper.is_none() {
            return Ok(None);
        }
        let user_dirs = &self.launch_env.user_dirs;
        let private_tmp = PrivateTmp::create(&user_dirs.temporary, self.project, self.run_id, self.spare_tmp)?;
        for variable in ["TMPDIR", "TMP", "TEMP", "CLAUDE_CODE_TMPDIR"] {
            command.extra_env.insert(variable.to_string(), private_tmp.directory_path().as_os_str().to_owned());
        }
        if purpose.uses_package_caches() {
            for (variable, path) in package_caches::redirect_missing_caches(user_dirs, private_tmp.directory_path()) {
                command.extra_env.insert(variable.to_string(), path.into_os_string());
            }
        }
        // Daemons that would act for the agent without its restrictions.
        command.removed_env.extend(["TMUX", "TMUX_PANE", "STY", "DBUS_SESSION_BUS_ADDRESS"].map(String::from));
        let mut rules = self.build_rules(purpose, private_tmp.directory_path());
        if let SandboxPurpose::Agent { client: Some(client), workspace, .. } = purpose
            && let Some(access) = prepare_client_files(client, user_dirs, workspace, private_tmp.directory_path())?
        {
            rules.writable_paths.extend(access.writable_paths);
            rules.readable_paths.iter_mut().for_each(|paths| paths.push(access.readable_path.clone()));
            let (variable, private_dir) = access.dir_variable;
            command.extra_env.insert(variable.to_string(), private_dir.into_os_string());
        }
        if let Some(readable_paths) = &mut rules.readable_paths {
            // What the user's command line names: a script, for instance.
            let named_paths = [&command.program].into_iter().chain(&command.args).map(PathBuf::from);
            readable_paths.extend(named_paths.filter(|path| path.is_absolute() && path.exists()));
            // git fails if it cannot read the user's settings, which may contain tokens.
            command.extra_env.insert("GIT_CONFIG_GLOBAL".to_string(), "/dev/null".into());
        }
        command.sandbox = Some(rules);
        Ok(Some(private_tmp))
    }

    fn build_rules(&self, purpose: SandboxPurpose<'_>, private_tmp: &Path) -> SandboxRules {
        let settings = self.settings;
        let user_dirs = &self.launch_env.user_dirs;
        let mut writable_paths = vec![private_tmp.to_path_buf()];
        writable_paths.extend(self.shared_memory_dir());
        let mut readable_paths = Vec::new();
        let network = match purpose {
            SandboxPurpose::Agent { access, workspace, scratch_dir, .. } => {
                readable_paths.extend([workspace.to_path_buf(), scratch_dir.to_path_buf()]);
                readable_paths.extend(self.launch_env.own_program.parent().map(Path::to_path_buf));
                if access >= AgentAccess::Write {
                    writable_paths.push(workspace.to_path_buf());
                }
                &settings.network
            }
            SandboxPurpose::Check { writable_paths: check_paths } => {
                writable_paths.extend(check_paths.iter().cloned());
                &settings.check_network
            }
        };
        if purpose.uses_package_caches() {
            writable_paths.extend(package_caches::list_caches(user_dirs));
        }
        writable_paths.extend(settings.write.iter().map(|path| self.resolve_user_path(path)));
        let readable_paths = (settings.read == ReadScope::Strict).then(|| {
            // The devices that every program may use can be read in any case.
            let is_closed = |directory: &&str| *directory == "/dev" && self.shared_memory_dir().is_none();
            let system_dirs = SYSTEM_DIRS.into_iter().filter(|directory| !is_closed(directory)).map(PathBuf::from);
            // A clone borrows the objects of the user's repository.
            let tool_dirs = user_dirs.home.iter().flat_map(|home| TOOL_DIRS.iter().map(|name| home.join(name)));
            let own_dirs =
                package_caches::list_cargo_files(user_dirs).chain([self.project.root().join(".git")]).chain(tool_dirs);
            let named_paths = settings.read_paths.iter().map(|path| self.resolve_user_path(path));
            readable_paths
                .into_iter()
                .chain(system_dirs)
                .chain(user_dirs.programs.iter().cloned())
                .chain(own_dirs)
                .chain(named_paths)
                .collect()
        });
        SandboxRules { writable_paths, readable_paths, network: network_rule(network) }
    }

    /// Returns the directory in which programs share memory, unless the user's own files are there as well.
    fn shared_memory_dir(&self) -> Option<PathBuf> {
        let user_dirs = &self.launch_env.user_dirs;
        let shared_dir = Path::new("/dev/shm");
        let is_shared = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(shared_dir));
        let user_paths = [Some(self.project.root()), user_dirs.home.as_deref(), Some(user_dirs.temporary.as_path())];
        let has_user_files = user_paths.into_iter().flatten().any(is_shared);
        (!has_user_files).then(|| shared_dir.to_path_buf())
    }

    fn resolve_user_path(&self, path_text: &str) -> PathBuf {
        self.project_place().resolve_path(path_text)
    }

    fn project_place(&self) -> ProjectPlace<'_> {
        ProjectPlace { root: self.project.root(), home: self.launch_env.user_dirs.home.as_deref() }
    }

    /// Whether agents can write in the project.
    pub fn can_write_project(&self) -> bool {
        can_write_project(self.settings, self.support, &self.project_place())
    }
}
