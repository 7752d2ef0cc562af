def delpaths($paths):
  def absolute($length): if . < 0 then . + $length else . end;
  def bound($length; $default):
    if . == null then $default
    else [[absolute($length), 0] | max, $length] | min end;
  def delete($paths):
    if . == null then .
    else
      reduce ($paths | map(select(length > 1)) | group_by(.[0]))[] as $group (.;
        $group[0][0] as $key
        | if (try .[$key] catch null) == null then .
          else .[$key] |= delete($group | map(.[1:])) end)
      | [$paths[] | select(length == 1) | .[0]] as $keys
      | if $keys == [] then .
        elif type == "object" then
          (reduce $keys[] as $key ({}; .[$key] = true)) as $gone
          | with_entries(select(.key as $key | $gone | has($key) | not))
        elif type == "array" then
          . as $all
          | length as $length
          | (reduce $keys[] as $key ({};
              if ($key | type) == "object" then
                reduce range($key.start | bound($length; 0); $key.end | bound($length; $length))
                  as $at (.; .[$at | tostring] = true)
              else .[$key | floor | absolute($length) | tostring] = true end)) as $gone
          | [range($length) as $at | select($gone | has($at | tostring) | not) | $all[$at]]
        else error("Cannot delete field at index of \(type)") end
    end;
  if any($paths[]; . == []) then null else delete($paths) end;
def del(f): delpaths([path(f)]);
