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
  for (let at = 0; at + 512 <= archive.length && archive[at] !== 0; ) {
    const size = parseInt(text(at + 124, 12), 8) || 0;
    const type = String.fromCharCode(archive[at + 156]);
    const body = archive.subarray(at + 512, at + 512 + size);
    const isOld = text(at + 257, 5) !== "ustar" || archive[at + 262] !== 0;
    const prefix = isOld ? "" : text(at + 345, 155);
    const short = text(at, 100);
    if (type === "L") {
      longName = text(at + 512, size);
    } else {
      const path = (longName ?? (prefix ? `${prefix}/${short}` : short)).replace(/^\.\//, "").replace(/\/+$/, "");
      longName = undefined;
      if (type === "5" && path !== "" && path !== ".") entries.push({ path, content: null });
      else if (type === "0" || type === "\0") entries.push({ path, content: body });
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return entries;
}
