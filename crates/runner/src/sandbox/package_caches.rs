//! Caches of package managers: what they download and unpack. None of these directories is on anyone's PATH.

use std::path::{Path, PathBuf};

use tribunal_agents::driver::UserDirs;

const CARGO_CACHES: [&str; 5] = ["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];
const CACHE_DIRS: [&str; 10] =
    ["pip", "uv", "pypoetry", "yarn", "pnpm", "go-build", "node-gyp", "composer", "deno", "ms-playwright"];
const HOME_CACHES: [&str; 11] = [
    ".npm/_cacache",
    ".npm/_logs",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    "go/pkg/mod",
    "go/pkg/sumdb",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
    ".ivy2/cache",
    ".yarn/berry/cache",
];

/// Lists what cargo reads in its own directory: everything but credentials.
pub(super) fn list_cargo_files(user_dirs: &UserDirs) -> impl Iterator<Item = PathBuf> {
    let names = CARGO_CACHES.into_iter().chain(["bin", "config.toml", "config", "env"]);
    user_dirs.cargo.iter().flat_map(move |cargo_dir| names.clone().map(|name| cargo_dir.join(name)))
}

/// Lists the caches that exist.
pub(super) fn list_caches(user_dirs: &UserDirs) -> impl Iterator<Item = PathBuf> {
    let below = |base_dir: &Option<PathBuf>, names: &[&str]| -> Vec<PathBuf> {
        base_dir.iter().flat_map(|base_dir| names.iter().map(|name| base_dir.join(name))).collect()
    };
    let caches = [
        below(&user_dirs.cargo, &CARGO_CACHES),
        below(&user_dirs.cache, &CACHE_DIRS),
        below(&user_dirs.home, &HOME_CACHES),
    ];
    // A link could lead anywhere.
    caches.into_iter().flatten().filter(|path| path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink()))
}

/// Variables that name a cache, and where it is below the home directory and below the directory for caches.
const HOME_CACHE_VARIABLES: [(&str, &str); 5] = [
    ("npm_config_cache", ".npm/_cacache"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("GRADLE_USER_HOME", ".gradle/caches"),
    ("NUGET_PACKAGES", ".nuget/packages"),
    ("BUN_INSTALL_CACHE_DIR", ".bun/install/cache"),
];
const CACHE_VARIABLES: [(&str, &str); 6] = [
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("GOCACHE", "go-build"),
    ("DENO_DIR", "deno"),
    ("COMPOSER_CACHE_DIR", "composer"),
];

/// Lists the variables that send package managers to a private directory because they have no cache yet. They could not create
/// one, and some of them fail without.
pub(super) fn redirect_missing_caches(user_dirs: &UserDirs, private_tmp: &Path) -> Vec<(&'static str, PathBuf)> {
    let is_missing = |base_dir: &Option<PathBuf>, name: &str| {
        base_dir.as_ref().is_none_or(|base_dir| base_dir.join(name).symlink_metadata().is_err())
    };
    let redirected_dir = private_tmp.join("caches");
    let home_variables = HOME_CACHE_VARIABLES.iter().filter(|(_, name)| is_missing(&user_dirs.home, name));
    let cache_variables = CACHE_VARIABLES.iter().filter(|(_, name)| is_missing(&user_dirs.cache, name));
    let mut redirected: Vec<(&'static str, PathBuf)> =
        home_variables.chain(cache_variables).map(|(variable, _)| (*variable, redirected_dir.join(variable))).collect();
    if is_missing(&user_dirs.cargo, "registry") {
        redirected.push(("CARGO_HOME", redirected_dir.join("cargo")));
    }
    redirected
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_cache_is_used_where_it_exists_and_private_where_not() {
        let temp_dir = tempfile::tempdir().unwrap();
        let home_dir = temp_dir.path().join("home");
        fs::create_dir_all(home_dir.join(".npm/_cacache")).unwrap();
        fs::create_dir_all(home_dir.join(".cache/uv")).unwrap();
        // A link could lead to what must not be written.
        std::os::unix::fs::symlink("/usr", home_dir.join(".cache/pip")).unwrap();
        let user_dirs = UserDirs {
            cache: Some(home_dir.join(".cache")),
            home: Some(home_dir.clone()),
            cargo: None,
            ..UserDirs::default()
        };
        let caches: Vec<PathBuf> = list_caches(&user_dirs).collect();
        assert_eq!(caches, [home_dir.join(".cache/uv"), home_dir.join(".npm/_cacache")]);
        let redirected = redirect_missing_caches(&user_dirs, Path::new("/private"));
        let variables: Vec<&str> = redirected.iter().map(|(variable, _)| *variable).collect();
        assert!(variables.contains(&"GOCACHE") && variables.contains(&"CARGO_HOME"), "{variables:?}");
        assert!(!variables.contains(&"npm_config_cache") && !variables.contains(&"UV_CACHE_DIR"), "{variables:?}");
        assert!(redirected.iter().all(|(_, path)| path.starts_with("/private")));
    }
}
