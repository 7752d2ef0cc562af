// Reading tar archives, as the sandbox writes them.

/**
 * The files and directories of an archive.
 * @param {Uint8Array} archive
 * @returns {{path: string, content: Uint8Array | null}[]} `null`: a directory
 */
export function readTar(archive) {
  const entries = [];
  const decoder = new TextDecoder();
  const text = (from, length) => {
    const bytes = archive.subarray(from, from + length);
    const end = bytes.indexOf(0);
    return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
  };
  let longName;
  for (let at = 0; at + 512 <= archive.length; ) {
    if (archive[at] === 0) break;
    const size = parseInt(text(at + 124, 12), 8) || 0;
    const type = String.fromCharCode(archive[at + 156]);
    const body = archive.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
    if (type === "L") {
      longName = text(at - Math.ceil(size / 512) * 512, size);
      continue;
    }
    const header = at - 512 - Math.ceil(size / 512) * 512;
    const prefix = text(header + 257, 5) === "ustar" && archive[header + 262] === 0 ? text(header + 345, 155) : "";
    const short = text(header, 100);
    const path = longName ?? (prefix ? `${prefix}/${short}` : short);
    longName = undefined;
    const clean = path.replace(/^\.\//, "").replace(/\/+$/, "");
    if (clean === "" || clean === ".") continue;
    if (type === "5") entries.push({ path: clean, content: null });
    else if (type === "0" || type === "\0") entries.push({ path: clean, content: body });
  }
  return entries;
}
