//! Why a program could not be found, started or kept.

use std::io;
use std::path::PathBuf;

/// Why a program could not be found or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No executable file of that name exists where we may look.
    #[error("cannot find {program}")]
    NotFound {
        /// The name or path that was looked for.
        program: String,
    },
    /// The file exists but is not a regular file that we may execute.
    #[error("{} is not an executable file", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The program lies inside the workspace, where the agent or a stranger's repository could have
    /// planted it.
    #[error(
        "{} is inside the workspace {} and is not run from there; name it explicitly in the configuration if this is meant",
        path.display(), workspace.display()
    )]
    InsideWorkspace {
        /// The program, as found.
        path: PathBuf,
        /// The workspace that contains it.
        workspace: PathBuf,
    },
    /// The program was found only through a relative entry of `PATH`.
    #[error(
        "{program} is reachable only through the relative PATH entry {entry:?}, which is not used"
    )]
    RelativePathEntry {
        /// The name that was looked for.
        program: String,
        /// The entry of `PATH`.
        entry: PathBuf,
    },
    /// A path that must be absolute is not.
    #[error("{} is not an absolute path", path.display())]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// A string for the child contains a zero byte, which no argument or variable can carry.
    #[error("{what} contains a zero byte")]
    Nul {
        /// Which string: never its value, which may be secret.
        what: String,
    },
    /// A variable's name is empty or contains `=`.
    #[error("{name:?} is not a name of an environment variable")]
    BadVariable {
        /// The name.
        name: String,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to execute the program.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The new terminal could not be made the program's own.
    #[error("cannot give the program a terminal")]
    Terminal {
        /// What the system said.
        source: io::Error,
    },
    /// The host process itself could not be started.
    #[error("cannot start the host process")]
    Host {
        /// What the system said.
        source: io::Error,
    },
    /// The host process ended or stayed silent instead of starting the program.
    #[error("the host process did not answer; is tieline_proc::init() the first line of main?")]
    HostMissing,
}
