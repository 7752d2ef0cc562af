// What every entry file exports.

export { MemoryEnvironment } from "./sandbox.js";
export { Project, deleteProject, listProjects, openProject } from "./project.js";
export { Session, createSession } from "./session.js";
export { CoreError, EnvironmentError, HermitcrabError, SessionError } from "./errors.js";
