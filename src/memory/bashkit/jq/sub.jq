def sub(re; f; flags):
  [split_matches(re; flags)[] | [if type == "array" then capture_of_match | f end]] as $parts
  | reduce $parts[] as $texts (""; . + $texts[]);
def sub(re; f): sub(re; f; "");
def gsub(re; f; flags): sub(re; f; "g" + flags);
def gsub(re; f): sub(re; f; "g");
